/* SPDX-License-Identifier: Apache-2.0 */
/* Threads on cores, and when they have their turn. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* How many cores this process may use; at least 1. */
uint32_t lh_cores_count(void);

/* What machine this is, also where its hosts have several names, and which of its cores the process
 * may use: the same text in processes that share them, and in no others. Caller frees. */
char *lh_cores_text(void);

/* Keeps the calling thread on core @index (modulo their count) of those the process may use; false
 * if the system does not let it. */
bool lh_pin_thread(uint32_t index);

/*
 * From now on the calling thread, which has little to do each time that it is woken (it hands
 * messages on, or issues ops), does not wait for a core until others have had their slices of some
 * milliseconds: asks Linux for a short slice (sched_setattr(2), from 6.12 on; without effect
 * before, and elsewhere). Threads inherit it. Returns what the slice was, in nanoseconds; 0: it has
 * not changed.
 */
uint64_t lh_wake_promptly(void);

/* The same with the slice that it had before, which lh_wake_promptly() has returned. */
void lh_wake_as_before(uint64_t slice_ns);
