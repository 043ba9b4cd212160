/* Threads on cores, and when they have their turn. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* How many cores this process may use; at least 1. */
uint32_t lh_cores_count(void);

/* Keeps the calling thread on core @index (modulo their count) of those the process may use; false
 * if the system does not let it. */
bool lh_pin_thread(uint32_t index);

/*
 * How soon the calling thread runs when it is woken and others have all cores: promptly if it has
 * little to do each time (it hands messages on, or issues ops), else, as by default, after what
 * runs has had its slice of some milliseconds. Asks Linux for a short slice (sched_setattr(2), from
 * 6.12 on; without effect before, and elsewhere). Threads inherit it.
 */
void lh_wake_promptly(bool promptly);
