/* SPDX-License-Identifier: Apache-2.0 */
/* Work shared among threads: every index runs once, on numbered threads. */
#include "base/threads.h"

#include "run_tests.h"

#include <stdatomic.h>

#define COUNT_MAX 500
#define THREADS_MAX 5

typedef struct {
    guint threads, count;
    atomic_uint calls[COUNT_MAX + 1];
    atomic_uint begun; /* calls begun */
} Sheet;

static void
note_call(void *data, guint thread, guint index)
{
    Sheet *sheet = data;

    ck_assert_uint_lt(thread, MAX(sheet->threads, 1));
    ck_assert_uint_lt(index, sheet->count);
    if (sheet->threads <= 1)
        ck_assert_uint_eq(index, atomic_load(&sheet->begun));
    atomic_fetch_add(&sheet->begun, 1);
    atomic_fetch_add(&sheet->calls[index], 1);
}

static void
note_index(void *data, guint index)
{
    note_call(data, 0, index);
}

static void
check_sheet(const Sheet *sheet)
{
    ck_assert_uint_eq(atomic_load(&sheet->begun), sheet->count);
    for (guint i = 0; i < sheet->count; i++)
        ck_assert_uint_eq(atomic_load(&sheet->calls[i]), 1);
}

START_TEST(every_index_is_taken_once)
{
    static const guint counts[] = { 0, 1, 2, THREADS_MAX, COUNT_MAX };

    for (guint threads = 0; threads <= THREADS_MAX; threads++) {
        for (guint i = 0; i < G_N_ELEMENTS(counts); i++) {
            Sheet numbered = { .threads = threads, .count = counts[i] };
            Sheet plain = { .threads = threads, .count = counts[i] };

            lh_on_numbered_threads_each("test", threads, counts[i], note_call, &numbered);
            check_sheet(&numbered);
            lh_on_threads_each("test", threads, counts[i], note_index, &plain);
            check_sheet(&plain);
        }
    }
}
END_TEST

LH_TEST_MAIN("base_threads", every_index_is_taken_once)
