/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/interrupt.h"

#include <glib.h>
#include <signal.h>

static volatile sig_atomic_t interrupted;

/* Signals that interrupt, and their previous handlers (base/files/output.h, cli/job.c). */
static struct {
    int number;
    volatile sig_atomic_t taken;
    struct sigaction before;
} signals[] = { { .number = SIGINT }, { .number = SIGTERM } };

static void
give_back(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(signals); i++) {
        if (signals[i].taken)
            (void)sigaction(signals[i].number, &signals[i].before, NULL);
        signals[i].taken = 0;
    }
}

/* Restores the previous handlers, so that the next signal of either kind ends the process. */
static void
interrupt(int number)
{
    (void)number;
    interrupted = 1;
    give_back();
}

/* Saves the previous handler before installing ours: a signal that arrives at once can restore
 * it. */
static void
take(size_t i, const struct sigaction *action)
{
    if (sigaction(signals[i].number, NULL, &signals[i].before) != 0 ||
        signals[i].before.sa_handler == SIG_IGN)
        return;
    signals[i].taken = 1;
    if (sigaction(signals[i].number, action, NULL) != 0)
        signals[i].taken = 0;
}

void
lh_interrupt_listen(void)
{
    struct sigaction action = { .sa_handler = interrupt };

    if (interrupted || signals[0].taken || signals[1].taken)
        return;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < G_N_ELEMENTS(signals); i++)
        sigaddset(&action.sa_mask, signals[i].number);
    for (size_t i = 0; i < G_N_ELEMENTS(signals); i++)
        take(i, &action);
}

bool
lh_interrupted(void)
{
    return interrupted != 0;
}

void
lh_interrupt_end(void)
{
    give_back();
    interrupted = 0;
}
