/* SPDX-License-Identifier: Apache-2.0 */
/* Core affinity and scheduling of threads. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Number of cores this process may use; at least 1. */
uint32_t lh_cores_count(void);

/* Identifies the machine (independent of host names) and the cores this process may use: equal in
 * processes that share them, and in no others. Caller frees. */
char *lh_cores_text(void);

/* Pins the calling thread to core @index (modulo their number) of those the process may use; false
 * if the system does not allow it. */
bool lh_pin_thread(uint32_t index);

/*
 * Reduces the wake-up delay of the calling thread, which does little each time it is woken
 * (forwards messages or issues ops) and should not wait for a core until others have used their
 * slices of some milliseconds. Requests a short time slice from Linux (sched_setattr(2), from 6.12
 * on; no effect before, and elsewhere). Threads inherit it. Returns the previous slice in
 * nanoseconds; 0: unchanged.
 */
uint64_t lh_wake_promptly(void);

/* Restores the slice that lh_wake_promptly() returned. */
void lh_wake_as_before(uint64_t slice_ns);
