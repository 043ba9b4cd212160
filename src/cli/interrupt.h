/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ctrl-C (SIGINT), or SIGTERM, while a command works on something of which a part is an answer,
 * too: the command ends with that part. A second one, of either kind, ends the process at once.
 */
#pragma once

#include <stdbool.h>

/* Takes both over, each unless it is ignored, from here to the end of the command: what was found
 * is then printed whole. Nothing if this was done before. */
void lh_interrupt_listen(void);

/* Whether there was one since. From any thread. */
bool lh_interrupted(void);

/* Gives them back; at the end of a command. */
void lh_interrupt_end(void);
