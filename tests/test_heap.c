/*
 * The event heap against a list that is searched from end to end: whatever is inserted, moved or
 * taken out, entries leave in the order (time, insertion number).
 */
#include "base/heap.h"

#include "base/rng.h"
#include "run_tests.h"

#define ITEMS_MAX 600
#define ABSENT INT64_MIN

/* The same queue without any structure: the time and insertion number of each item. */
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

/* The item that is due first, or ITEMS_MAX. */
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
check_heads(const LhHeap *heap, const List *list)
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

/* Every parent comes before its children, and every item knows where it is. */
static void
check_structure(const LhHeap *heap)
{
    uint32_t present = 0;

    for (uint32_t i = 1; i < heap->count; i++)
        ck_assert(lh_heap_before(heap->entries[(i - 1) / 4], heap->entries[i]));
    for (uint32_t item = 0; item < heap->items; item++) {
        if (heap->positions[item] == 0)
            continue;
        present++;
        ck_assert_uint_eq(lh_heap_item(heap->entries[heap->positions[item] - 1]), item);
    }
    ck_assert_uint_eq(present, heap->count);
}

/* One random walk; few distinct times, so that many are equal. */
static void
walk(uint64_t seed, uint32_t items, LhTime times, uint32_t steps)
{
    LhHeap heap = { 0 };
    List list;

    list_init(&list);
    lh_heap_reserve(&heap, items);
    for (uint32_t step = 0; step < steps; step++) {
        const uint64_t bits = lh_rng_bits(seed, step, 0);
        const uint32_t item = (uint32_t)(lh_rng_bits(seed, step, 1) % items);
        const LhTime time = (LhTime)(lh_rng_bits(seed, step, 2) % (uint64_t)times);

        if (bits % 8 < 5) {
            lh_heap_set(&heap, item, time);
            list_set(&list, item, time);
        } else if (bits % 8 < 6) {
            lh_heap_remove(&heap, item);
            list_remove(&list, item);
        } else if (list.count > 0) {
            check_pop(&heap, &list);
        }
        check_heads(&heap, &list);
        if (step % 64 == 0)
            check_structure(&heap);
    }
    while (list.count > 0)
        check_pop(&heap, &list);
    ck_assert_int_eq(lh_heap_time(&heap), LH_TIME_NEVER);
    lh_heap_clear(&heap);
}

START_TEST(heap_equals_a_sorted_list)
{
    for (uint64_t seed = 0; seed < 12; seed++) {
        walk(seed, 1, 4, 200);
        walk(seed, 5, 3, 400);
        walk(seed, 70, 1000000, 1500);
        walk(seed, ITEMS_MAX, 40, 3000);
        walk(seed, ITEMS_MAX, INT64_MAX, 2000);
    }
}
END_TEST

START_TEST(heap_keeps_insertion_order_at_one_time)
{
    LhHeap heap = { 0 };

    lh_heap_reserve(&heap, 300);
    for (uint32_t i = 0; i < 300; i++)
        lh_heap_set(&heap, (i * 7) % 300, 5);
    /* A new key at the old time is a new insertion: to the back. */
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
        check_structure(&heap);
        for (uint32_t i = 0; i < items / 2; i++)
            check_pop(&heap, &list);
    }
    lh_heap_clear(&heap);
    ck_assert_ptr_null(heap.block);
    ck_assert_uint_eq(heap.items, 0);
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
