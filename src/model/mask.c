/* SPDX-License-Identifier: Apache-2.0 */
/* Intervals of keys, and exact counts of query-key pairs. */
#include "model/mask.h"

#include <glib.h>
#include <string.h>

/* The document that contains @position. */
static uint32_t
document_of(const LhMaskRule *rule, uint64_t position)
{
    uint32_t low = 0, high = rule->documents_count - 1;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;

        if (rule->document_ends[middle] <= position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint64_t
document_first(const LhMaskRule *rule, uint32_t document)
{
    return document == 0 ? 0 : rule->document_ends[document - 1];
}

LhInterval
lh_mask_keys(const LhMaskRule *rule, uint64_t position, uint64_t seq_length)
{
    LhInterval keys = { 0, seq_length };

    if (rule->documents_count > 1) {
        const uint32_t document = document_of(rule, position);

        keys.first = document_first(rule, document);
        keys.end = rule->document_ends[document];
    }
    if (!rule->causal)
        return keys;
    keys.end = MIN(keys.end, position + 1);
    if (rule->window != 0 && position >= rule->window)
        keys.first = MAX(keys.first, position - rule->window + 1);
    return keys;
}

bool
lh_mask_sees(const LhMaskRule *rule, uint64_t q, uint64_t k)
{
    if (rule->causal && (k > q || (rule->window != 0 && q - k >= rule->window)))
        return false;
    return rule->documents_count <= 1 || document_of(rule, q) == document_of(rule, k);
}

uint64_t
lh_causal_pairs(uint64_t nq, uint64_t nk, int64_t shift)
{
    const int64_t rows = (int64_t)nq;
    const int64_t keys = (int64_t)nk;
    /* Row i allows i + shift + 1 keys: none before row `first`, all of them from row `full` on. */
    const int64_t first = CLAMP(-shift, 0, rows);
    const int64_t full = CLAMP(keys - 1 - shift, 0, rows);
    const uint64_t ramp = (uint64_t)MAX(full - first, 0);

    if (nk == 0)
        return 0;
    /* The rows in between allow first + shift + 1, ..., full + shift keys. */
    if (ramp == 0)
        return (uint64_t)(rows - full) * nk;
    return ramp * (uint64_t)(first + full + 2 * shift + 1) / 2 + (uint64_t)(rows - full) * nk;
}

static int64_t
floor_quotient(int64_t a, int64_t b)
{
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

/* Number of pairs with key position <= query position + reach. */
static uint64_t
pairs_up_to(LhSegment q, LhSegment k, int64_t reach)
{
    const uint64_t stride = q.count > 1 ? q.stride : k.stride;
    const int64_t ahead = (int64_t)q.start - (int64_t)k.start + reach;

    return lh_causal_pairs(q.count, k.count, floor_quotient(ahead, (int64_t)MAX(stride, 1)));
}

static uint64_t
last_of(LhSegment s)
{
    return s.start + (s.count - 1) * s.stride;
}

/* Number of allowed pairs, without documents. */
static uint64_t
pairs_within(const LhMaskRule *rule, LhSegment q, LhSegment k)
{
    uint64_t pairs;

    if (q.count == 0 || k.count == 0)
        return 0;
    if (!rule->causal)
        return q.count * k.count;
    /* Most pairs of segments have no pairs or all of them, which takes no division to see. */
    if (k.start > last_of(q))
        return 0;
    if (last_of(k) <= q.start && (rule->window == 0 || last_of(q) - k.start < rule->window))
        return q.count * k.count;
    if (rule->window != 0 && last_of(k) <= q.start && q.start - last_of(k) >= rule->window)
        return 0;
    pairs = pairs_up_to(q, k, 0);
    return rule->window == 0 ? pairs : pairs - pairs_up_to(q, k, -(int64_t)rule->window);
}

/* The tokens of @s in [first, end). */
static LhSegment
clip(LhSegment s, uint64_t first, uint64_t end)
{
    const uint64_t stride = MAX(s.stride, 1);
    uint64_t from, to, low, high;

    if (s.count > 0 && first <= s.start && last_of(s) < end)
        return s;
    from = first <= s.start ? 0 : (first - s.start + stride - 1) / stride;
    to = end <= s.start ? 0 : (end - s.start + stride - 1) / stride;
    low = MIN(from, s.count);
    high = CLAMP(to, low, s.count);
    return (
        LhSegment){ .start = s.start + low * s.stride, .stride = s.stride, .count = high - low };
}

uint64_t
lh_mask_pairs(const LhMaskRule *rule, LhSegment q, LhSegment k)
{
    uint64_t pairs = 0, low, high;

    if (q.count == 0 || k.count == 0)
        return 0;
    g_assert(q.count == 1 || k.count == 1 || q.stride == k.stride);
    if (rule->documents_count <= 1)
        return pairs_within(rule, q, k);
    low = MAX(q.start, k.start);
    high = MIN(last_of(q), last_of(k));
    low = MIN(low, high); /* one document may contain both segments with a gap between them */
    for (uint32_t d = document_of(rule, low); d < rule->documents_count; d++) {
        const uint64_t first = document_first(rule, d), end = rule->document_ends[d];

        pairs += pairs_within(rule, clip(q, first, end), clip(k, first, end));
        if (end > high)
            break;
    }
    return pairs;
}

/* Number of keys that the queries @q attend to in a document [first, end) that contains all of
 * @q. */
static uint64_t
keys_within(const LhMaskRule *rule, LhSegment q, uint64_t first, uint64_t end)
{
    const uint64_t most = rule->window == 0 ? end - first : rule->window;
    const uint64_t ahead = q.start - first + 1; /* keys up to the first query */
    uint64_t rows;                              /* rows whose keys begin at the document's start */

    if (!rule->causal)
        return q.count * (end - first);
    if (ahead > most)
        return q.count * most;
    rows = MIN((most - ahead) / MAX(q.stride, 1) + 1, q.count);
    return rows * ahead + q.stride * (rows * (rows - 1) / 2) + (q.count - rows) * most;
}

uint64_t
lh_mask_keys_count(const LhMaskRule *rule, LhSegment q, uint64_t seq_length)
{
    uint64_t keys = 0;

    if (q.count == 0)
        return 0;
    if (rule->documents_count <= 1)
        return keys_within(rule, q, 0, seq_length);
    for (uint32_t d = document_of(rule, q.start); d <= document_of(rule, last_of(q)); d++) {
        const uint64_t first = document_first(rule, d), end = rule->document_ends[d];
        const LhSegment rows = clip(q, first, end);

        if (rows.count > 0)
            keys += keys_within(rule, rows, first, end);
    }
    return keys;
}

bool
lh_mask_rules_equal(const LhMaskRule *a, const LhMaskRule *b)
{
    const uint32_t documents = MAX(a->documents_count, 1);

    if (a->causal != b->causal || a->window != b->window || documents != MAX(b->documents_count, 1))
        return false;
    return documents == 1 ||
           memcmp(a->document_ends, b->document_ends, documents * sizeof(uint64_t)) == 0;
}
