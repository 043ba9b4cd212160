/*
 * Ctrl-C while a command works on something of which a part is an answer, too: the command ends
 * with that part. A second Ctrl-C ends the process.
 */
#pragma once

#include <stdbool.h>

/* Takes SIGINT over, unless it is ignored; true if it did. */
bool lh_interrupt_listen(void);

/* Whether there was one since. From any thread. */
bool lh_interrupted(void);

/* Gives SIGINT back. */
void lh_interrupt_end(bool listened);
