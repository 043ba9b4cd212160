/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event queue against a linear search: for any insertions, moves and removals at any distance
 * in time, entries leave in the order (time, insertion number).
 */
#include "base/heap.h"

#include "base/rng.h"
#include "run_tests.h"

#define ITEMS_MAX 600
#define ABSENT INT64_MIN

/* The reference queue: time and insertion number of each item. */
typedef struct {
    LhTime times[ITEMS_MAX];
    uint64_t orders[ITEMS_MAX];
    uint64_t inserted;
    uint32_t count;
} List;

static void
list_init(List *list)
{
    *list = (List){ 0 };
    for (uint32_t i = 0; i < ITEMS_MAX; i++)
        list->times[i] = ABSENT;
}

static void
list_set(List *list, uint32_t item, LhTime time)
{
    list->count += list->times[item] == ABSENT;
    list->times[item] = time;
    list->orders[item] = list->inserted++;
}

static void
list_remove(List *list, uint32_t item)
{
    list->count -= list->times[item] != ABSENT;
    list->times[item] = ABSENT;
}

/* The next item due, or ITEMS_MAX. */
static uint32_t
list_first(const List *list)
{
    uint32_t first = ITEMS_MAX;

    for (uint32_t i = 0; i < ITEMS_MAX; i++) {
        if (list->times[i] == ABSENT)
            continue;
        if (first == ITEMS_MAX || list->times[i] < list->times[first] ||
            (list->times[i] == list->times[first] && list->orders[i] < list->orders[first]))
            first = i;
    }
    return first;
}

static void
check_heads(LhHeap *heap, const List *list)
{
    const uint32_t first = list_first(list);

    ck_assert_uint_eq(heap->count, list->count);
    ck_assert_int_eq(lh_heap_time(heap), first == ITEMS_MAX ? LH_TIME_NEVER : list->times[first]);
}

static void
check_pop(LhHeap *heap, List *list)
{
    const uint32_t first = list_first(list);

    ck_assert_uint_eq(lh_heap_pop(heap), first);
    list_remove(list, first);
}

typedef enum {
    ANY_TIME,  /* uniform in [0, span) */
    EVENTS,    /* as in a simulator: not before the last popped time, within the next span */
    ANY_SCALE, /* likewise, with steps of all magnitudes up to the span */
} Times;

typedef struct {
    uint64_t seed;
    uint32_t items;
    Times times;
    LhTime span;
    uint32_t steps;
} Walk;

static LhTime
random_time(const Walk *walk, uint32_t step, LhTime now)
{
    const uint64_t bits = lh_rng_bits(walk->seed, step, 2);
    LhTime span = walk->span;

    if (walk->times == ANY_TIME)
        return (LhTime)(bits % (uint64_t)span);
    if (walk->times == ANY_SCALE)
        span = MAX(1, span >> lh_rng_bits(walk->seed, step, 3) % 50);
    return now + (LhTime)(bits % (uint64_t)span);
}

/* A random walk; a span of few picoseconds gives many equal times. */
static void
check_walk(const Walk *walk)
{
    LhHeap heap = { 0 };
    LhTime now = 0;
    List list;

    list_init(&list);
    lh_heap_reserve(&heap, walk->items);
    for (uint32_t step = 0; step < walk->steps; step++) {
        /* Phases of growth and shrinkage alternate. */
        const uint64_t eagerness = step / 512 % 2 == 0 ? 6 : 3;
        const uint64_t what = lh_rng_bits(walk->seed, step, 0) % 8;
        const uint32_t item = (uint32_t)(lh_rng_bits(walk->seed, step, 1) % walk->items);

        if (what < eagerness) {
            const LhTime time = random_time(walk, step, now);

            lh_heap_set(&heap, item, time);
            list_set(&list, item, time);
        } else if (what == 6) {
            lh_heap_remove(&heap, item);
            list_remove(&list, item);
        } else if (list.count > 0) {
            now = lh_heap_time(&heap);
            check_pop(&heap, &list);
        }
        check_heads(&heap, &list);
    }
    while (list.count > 0)
        check_pop(&heap, &list);
    ck_assert_int_eq(lh_heap_time(&heap), LH_TIME_NEVER);
    lh_heap_clear(&heap);
}

START_TEST(heap_equals_a_sorted_list)
{
    for (uint64_t seed = 0; seed < 8; seed++) {
        const Walk walks[] = {
            { seed, 1, ANY_TIME, 4, 200 },
            { seed, 5, ANY_TIME, 3, 400 },
            { seed, 70, ANY_TIME, 1000000, 2000 },
            { seed, ITEMS_MAX, ANY_TIME, 40, 2500 },
            { seed, ITEMS_MAX, ANY_TIME, INT64_MAX, 2500 },
            { seed, ITEMS_MAX, EVENTS, 3, 2500 },
            { seed, ITEMS_MAX, EVENTS, 5000000000, 4000 },
            { seed, 40, EVENTS, INT64_C(1) << 52, 1500 },
            { seed, ITEMS_MAX, ANY_SCALE, INT64_C(1) << 50, 5000 },
            { seed, 12, ANY_SCALE, INT64_C(1) << 50, 1500 },
        };

        for (uint32_t i = 0; i < G_N_ELEMENTS(walks); i++)
            check_walk(&walks[i]);
    }
}
END_TEST

START_TEST(heap_keeps_insertion_order_at_one_time)
{
    LhHeap heap = { 0 };

    lh_heap_reserve(&heap, 300);
    for (uint32_t i = 0; i < 300; i++)
        lh_heap_set(&heap, (i * 7) % 300, 5);
    /* A new key with the old time counts as a new insertion: it goes to the back. */
    lh_heap_set(&heap, 0, 5);
    for (uint32_t i = 1; i < 300; i++)
        ck_assert_uint_eq(lh_heap_pop(&heap), (i * 7) % 300);
    ck_assert_uint_eq(lh_heap_pop(&heap), 0);
    ck_assert_uint_eq(heap.count, 0);
    lh_heap_clear(&heap);
}
END_TEST

START_TEST(heap_grows_while_in_use)
{
    LhHeap heap = { 0 };
    List list;

    list_init(&list);
    for (uint32_t items = 1; items < ITEMS_MAX; items += 13) {
        lh_heap_reserve(&heap, items);
        ck_assert_uint_ge(heap.items, items);
        for (uint32_t item = 0; item < items; item++) {
            const LhTime time = (LhTime)(lh_rng_bits(1, items, item) % 100);

            lh_heap_set(&heap, item, time);
            list_set(&list, item, time);
        }
        check_heads(&heap, &list);
        for (uint32_t i = 0; i < items / 2; i++)
            check_pop(&heap, &list);
    }
    lh_heap_clear(&heap);
    ck_assert_uint_eq(heap.count, 0);
}
END_TEST

START_TEST(heap_ignores_what_is_not_there)
{
    LhHeap heap = { 0 };

    lh_heap_reserve(&heap, 4);
    lh_heap_remove(&heap, 3);
    lh_heap_set(&heap, 3, 0);
    lh_heap_remove(&heap, 2);
    ck_assert_uint_eq(heap.count, 1);
    lh_heap_remove(&heap, 3);
    lh_heap_remove(&heap, 3);
    ck_assert_uint_eq(heap.count, 0);
    ck_assert_int_eq(lh_heap_time(&heap), LH_TIME_NEVER);
    lh_heap_clear(&heap);
}
END_TEST

LH_TEST_MAIN("heap", heap_equals_a_sorted_list, heap_keeps_insertion_order_at_one_time,
             heap_grows_while_in_use, heap_ignores_what_is_not_there)
