/* export.h - which names a shared libpliant shows */
#ifndef PLIANT_EXPORT_H
#define PLIANT_EXPORT_H

#if defined(__GNUC__)
#define PLIANT_API __attribute__((visibility("default")))
#else
#define PLIANT_API
#endif

#endif /* PLIANT_EXPORT_H */
