/* wall_clock.c - a wall clock that tests can set, for processes that LD_PRELOAD this
 *
 * CLOCK_REALTIME is off by as many milliseconds as the file that WALL_CLOCK names says: an int64_t,
 * mapped, so that it changes while the processes run. The other clocks are what they are.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *off_ms;

__attribute__((constructor)) static void map_file(void)
{
    const char *path = getenv("WALL_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *p = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *off_ms, PROT_READ, MAP_SHARED, fd, 0);

    if (fd >= 0)
        close(fd);
    if (p != MAP_FAILED)
        off_ms = p;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
    int r = (int)syscall(SYS_clock_gettime, id, t);

    if (r < 0 || !off_ms || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE))
        return r;
    t->tv_sec += *off_ms / 1000;
    t->tv_nsec += *off_ms % 1000 * 1000000;
    if (t->tv_nsec >= 1000000000) {
        t->tv_sec++;
        t->tv_nsec -= 1000000000;
    } else if (t->tv_nsec < 0) {
        t->tv_sec--;
        t->tv_nsec += 1000000000;
    }
    return 0;
}

time_t time(time_t *ret)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    if (ret)
        *ret = t.tv_sec;
    return t.tv_sec;
}

int gettimeofday(struct timeval *ret, void *zone)
{
    struct timespec t;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &t);
    *ret = (struct timeval){t.tv_sec, t.tv_nsec / 1000};
    return 0;
}
