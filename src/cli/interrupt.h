/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ctrl-C (SIGINT) or SIGTERM during a command with a useful partial result: the command ends and
 * prints that part. A second signal of either kind ends the process at once.
 */
#pragma once

#include <stdbool.h>

/* Handles both signals, unless ignored, until the end of the command. Does nothing if already
 * listening. */
void lh_interrupt_listen(void);

/* Whether a signal arrived since. Callable from any thread. */
bool lh_interrupted(void);

/* Restores the previous handlers; called at the end of a command. */
void lh_interrupt_end(void);
