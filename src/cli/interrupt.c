/* See the header. */
#include "cli/interrupt.h"

#include <signal.h>

static volatile sig_atomic_t interrupted;

static void
interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

bool
lh_interrupt_listen(void)
{
    const struct sigaction action = { .sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND };
    struct sigaction before;

    interrupted = 0;
    if (sigaction(SIGINT, NULL, &before) != 0 || before.sa_handler == SIG_IGN)
        return false;
    return sigaction(SIGINT, &action, NULL) == 0;
}

bool
lh_interrupted(void)
{
    return interrupted != 0;
}

void
lh_interrupt_end(bool listened)
{
    if (listened)
        signal(SIGINT, SIG_DFL);
}
