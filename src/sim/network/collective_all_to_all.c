/*
 * All-to-all, two ways. Every member sends a piece of its tensor to each of the others, 1/n of it
 * unless the call says otherwise; an empty piece is a message of no bytes.
 *
 * One shot: all sends at once, as in NCCL's grouped ncclSend and ncclRecv: to the member one
 * further, two further and so on, at most 64 of a member under way, since NCCL has 64 channels and
 * a peer takes at least one (NVIDIA/nccl src/include/device.h, MAXCHANNELS). A send whose peer is
 * not there yet holds its place.
 * Pairwise: step k exchanges with position ^ k where n is a power of two, else sends k further and
 * receives from k back; both ends must be through with step k - 1.
 * Left out: what NCCL gives each peer of channels, and its splitting of messages.
 */
#include "sim/network/collective.h"

#define UNDER_WAY_MAX 64

static uint32_t
ends(const LhCollective *c, uint32_t position)
{
    (void)position;
    return 2 * (c->size - 1);
}

static void
send(LhCollective *c, uint32_t from, uint32_t to)
{
    lh_collective_send(c, from, to, 0, lh_collective_piece(c, from, to));
}

/* ---- one shot ---- */

typedef struct {
    uint32_t posted; /* sends, to the members 1 .. posted further */
    uint32_t left;
} Sender;

static inline uint32_t
further(const LhCollective *c, uint32_t position, uint32_t distance)
{
    const uint32_t sum = position + distance;

    return sum < c->size ? sum : sum - c->size;
}

static void
post(LhCollective *c, uint32_t position)
{
    Sender *s = (Sender *)c->state + position;

    while (s->posted < c->size - 1 && s->posted - s->left < UNDER_WAY_MAX) {
        const uint32_t to = further(c, position, ++s->posted);

        if (c->members[to].there)
            send(c, position, to);
    }
}

static void
one_shot_joined(LhCollective *c, uint32_t position)
{
    for (uint32_t distance = 1; distance < c->size; distance++) {
        const uint32_t from = further(c, position, c->size - distance);

        if (distance <= ((Sender *)c->state)[from].posted)
            send(c, from, position);
    }
    post(c, position);
}

static void
one_shot_left(LhCollective *c, const LhHop *hop)
{
    ((Sender *)c->state)[hop->from].left++;
    post(c, hop->from);
}

const LhAlgorithm lh_algorithm_one_shot = {
    .member_size = sizeof(Sender), .ends = ends, .joined = one_shot_joined, .left = one_shot_left
};

/* ---- pairwise ---- */

typedef struct {
    uint32_t step; /* 1 .. n - 1; n: through; 0: not there */
    bool sending, sent, received;
} Partner;

static bool
is_power_of_two(uint32_t n)
{
    return (n & (n - 1)) == 0;
}

static uint32_t
sends_to(const LhCollective *c, uint32_t position, uint32_t step)
{
    return is_power_of_two(c->size) ? position ^ step : further(c, position, step);
}

static uint32_t
receives_from(const LhCollective *c, uint32_t position, uint32_t step)
{
    return is_power_of_two(c->size) ? position ^ step : further(c, position, c->size - step);
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
    send(c, position, to);
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

const LhAlgorithm lh_algorithm_pairwise = { .member_size = sizeof(Partner),
                                            .ends = ends,
                                            .joined = pairwise_joined,
                                            .arrived = pairwise_arrived };
