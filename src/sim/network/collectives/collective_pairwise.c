/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All-to-all step by step: step k exchanges with position ^ k if n is a power of two, else sends to
 * k after and receives from k before. Both ends must have finished step k - 1. A piece is 1/n of
 * the member's tensor unless the call states otherwise; an empty one is a message of no bytes.
 */
#include "sim/network/collectives/collectives_private.h"
#include "sim/network/collectives/script.h"

typedef struct {
    uint32_t step; /* 1 .. n - 1; n: done; 0: not arrived */
    bool sending, sent, received;
} Partner;

static uint32_t
pairwise_ends(const LhCollective *c, uint32_t position)
{
    (void)position;
    return 2 * (c->size - 1);
}

static bool
is_power_of_two(uint32_t n)
{
    return (n & (n - 1)) == 0;
}

static uint32_t
sends_to(const LhCollective *c, uint32_t position, uint32_t step)
{
    return is_power_of_two(c->size) ? position ^ step : lh_collective_further(c, position, step);
}

static uint32_t
receives_from(const LhCollective *c, uint32_t position, uint32_t step)
{
    return is_power_of_two(c->size) ? position ^ step
                                    : lh_collective_further(c, position, c->size - step);
}

static void
send_step(LhCollective *c, uint32_t position)
{
    Partner *partners = c->state, *p = &partners[position];
    uint32_t to;

    if (p->step == 0 || p->step == c->size || p->sending)
        return;
    to = sends_to(c, position, p->step);
    if (partners[to].step != p->step)
        return;
    p->sending = true;
    lh_collective_send(c, position, to, 0, lh_collective_piece(c, position, to));
}

static void
begin_step(LhCollective *c, uint32_t position, uint32_t step)
{
    ((Partner *)c->state)[position] = (Partner){ .step = step };
    if (step == c->size)
        return;
    send_step(c, position);
    send_step(c, receives_from(c, position, step));
}

static void
pairwise_joined(LhCollective *c, uint32_t position)
{
    begin_step(c, position, 1);
}

static void
pairwise_arrived(LhCollective *c, const LhHop *hop)
{
    Partner *from = (Partner *)c->state + hop->from, *to = (Partner *)c->state + hop->to;

    from->sent = true;
    to->received = true;
    if (from->received)
        begin_step(c, hop->from, from->step + 1);
    if (to->sent)
        begin_step(c, hop->to, to->step + 1);
}

static void
pairwise_script(const LhCollective *c, uint32_t position, LhScript *script)
{
    uint32_t before[2] = { LH_SCRIPT_NONE, LH_SCRIPT_NONE };

    for (uint32_t step = 1; step < c->size; step++) {
        const uint32_t to = sends_to(c, position, step), from = receives_from(c, position, step);
        const uint32_t send = lh_script_add(script, LH_SCRIPT_SEND, to,
                                            lh_collective_piece(c, position, to), before, 2);

        before[1] = lh_script_add(script, LH_SCRIPT_RECEIVE, from, lh_collective_incoming(c, from),
                                  before, 2);
        before[0] = send;
    }
}

const LhAlgorithm lh_algorithm_pairwise = { .member_size = sizeof(Partner),
                                            .ends = pairwise_ends,
                                            .joined = pairwise_joined,
                                            .arrived = pairwise_arrived,
                                            .script = pairwise_script };
