/* Threads on cores. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* How many cores this process may use; at least 1. */
uint32_t lh_cores_count(void);

/* Keeps the calling thread on core @index (modulo their count) of those the process may use; false
 * if the system does not let it. */
bool lh_pin_thread(uint32_t index);
