/* place.h - between the files of the allocator
 *
 * A way to place fills unit_slots[n_units] with indices into request->slots; n_units is
 * place_units(request), > 0 and <= n_slots.
 * Errors  -ENOMEM; unit_slots then holds anything
 */
#ifndef PLIANT_ALLOCATOR_PLACE_H
#define PLIANT_ALLOCATOR_PLACE_H

#include "allocator/allocator.h"

uint32_t place_units(const struct placement_request *request);
bool place_has_history(const struct placement_request *request);

int place_by_locality(const struct placement_request *request, uint32_t n_units,
                      const struct pliant_alloc *a, uint32_t *unit_slots);

#endif
