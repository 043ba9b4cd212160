/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each thread takes the next free row. Threads share constant data (the setup and the programs),
 * the limit of simulated time, and a lock for the caller's callbacks.
 */
#include "compare/compare_pool.h"

#include "base/threads.h"
#include "proof/run_time_estimate.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

/* Upper limit of any schedule's memory. Most use less than 25 KiB per rank; double-ring, whose
 * unneeded messages pile up, uses 313 KiB (512 ranks of hgx-h100). */
#define SIMULATION_BYTES_PER_RANK (512.0 * 1024)
#define MEMORY_SHARE 0.75 /* available to simulations */

typedef struct {
    const LhSetup *setup;
    GPtrArray *rows;
    const guint *order; /* order of the rows */
    const LhCompareOptions *options;
    _Atomic LhTime limit_ps; /* runs are abandoned at this simulated time */
    pthread_mutex_t lock;    /* protects the members below and the caller's callbacks */
    LhTime best_ps;
    bool interrupted;
} Pool;

/* A run on one thread. */
typedef struct {
    Pool *pool;
    bool interrupted;
} Turn;

static LhTime
pool_limit(const Pool *pool)
{
    const double limit = floor(pool->options->within * (double)pool->best_ps);

    return pool->options->within > 0 && limit < (double)LH_TIME_LONGEST ? (LhTime)limit
                                                                        : LH_TIME_NEVER;
}

static bool
report_turn(void *data, const LhProgress *at)
{
    Turn *turn = data;
    Pool *pool = turn->pool;

    pthread_mutex_lock(&pool->lock);
    pool->interrupted = pool->interrupted || !lh_task_tell(&pool->options->task, at);
    turn->interrupted = pool->interrupted;
    pthread_mutex_unlock(&pool->lock);
    return !turn->interrupted;
}

static void
interrupt(LhCompareRow *row)
{
    g_free(row->reason);
    row->state = LH_ROW_INTERRUPTED;
    row->reason = g_strdup("the comparison ended before this run");
}

/* Finishes a row: reports it to the caller and lowers the limit, which ends runs that are too
 * slow. */
static void
finish_row(Pool *pool, LhCompareRow *row)
{
    pthread_mutex_lock(&pool->lock);
    if (row->state == LH_ROW_RAN && row->ended_ps < pool->best_ps) {
        pool->best_ps = row->ended_ps;
        atomic_store(&pool->limit_ps, pool_limit(pool));
    }
    if (pool->options->came != NULL && row->result != NULL)
        pool->options->came(pool->options->came_data, row);
    pthread_mutex_unlock(&pool->lock);
}

static void
play_row(Pool *pool, LhCompareRow *row)
{
    Turn turn = { .pool = pool };
    const LhHooks hooks = { .task = { .progress = report_turn, .data = &turn },
                            .limit_ps = &pool->limit_ps,
                            .ended_ps = &row->ended_ps };

    if (row->program == NULL)
        return;
    if (report_turn(&turn, &(LhProgress){ .what = row->name }))
        lh_compare_play(row, pool->setup, &hooks);
    if (turn.interrupted && row->result == NULL)
        interrupt(row);
    else
        finish_row(pool, row);
}

static void
play_row_at(void *data, guint index)
{
    Pool *pool = data;

    play_row(pool, g_ptr_array_index(pool->rows, pool->order[index]));
}

/* Omits rows beyond the final limit. Runs that ended this late, even by a failure, would have been
 * abandoned under another order of threads. */
static void
leave_out_slow(const Pool *pool)
{
    const LhTime limit = pool_limit(pool);
    char factor[G_ASCII_DTOSTR_BUF_SIZE];

    for (guint i = 0; i < pool->rows->len; i++) {
        LhCompareRow *row = g_ptr_array_index(pool->rows, i);

        if (row->program == NULL || row->state == LH_ROW_INTERRUPTED || row->ended_ps <= limit)
            continue;
        g_clear_pointer(&row->result, lh_sim_result_free);
        g_free(row->reason);
        row->state = LH_ROW_LEFT_OUT;
        row->reason = g_strdup_printf("it takes more than %s times as long as the fastest",
                                      lh_double_to_text(pool->options->within, factor));
    }
}

/* ---- order of simulation ---- */

static int
by_work(gconstpointer a, gconstpointer b, gpointer data)
{
    const double *seconds = data;
    const guint x = *(const guint *)a, y = *(const guint *)b;

    if (seconds[x] != seconds[y])
        return seconds[x] < seconds[y] ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* Sorts rows by work, least first: they finish soon and set a limit for the others. Caller
 * frees. */
static guint *
order_rows(const GPtrArray *rows)
{
    guint *order = g_new(guint, rows->len);
    g_autofree double *seconds = g_new0(double, rows->len);

    for (guint i = 0; i < rows->len; i++) {
        const LhCompareRow *row = g_ptr_array_index(rows, i);

        order[i] = i;
        seconds[i] = row->program != NULL ? lh_run_time_simulate(row->program) : 0;
    }
    g_qsort_with_data(order, (int)rows->len, sizeof(*order), by_work, seconds);
    return order;
}

guint
lh_compare_threads(guint asked, guint simulations, uint32_t ranks)
{
    const double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    const double fit = floor(memory * MEMORY_SHARE / (SIMULATION_BYTES_PER_RANK * ranks));
    const guint most = asked > 0 ? asked : MIN(g_get_num_processors(), (guint)CLAMP(fit, 1, 1e6));

    return MAX(MIN(most, simulations), 1);
}

bool
lh_compare_play_all(const LhSetup *setup, GPtrArray *rows, const LhCompareOptions *options)
{
    const guint jobs = options->task.jobs;
    g_autofree guint *order = order_rows(rows);
    Pool pool = { .setup = setup,
                  .rows = rows,
                  .order = order,
                  .options = options,
                  .limit_ps = LH_TIME_NEVER,
                  .best_ps = LH_TIME_NEVER };

    pthread_mutex_init(&pool.lock, NULL);
    lh_on_threads_each("compare", lh_compare_threads(jobs, rows->len, setup->network.ranks),
                       rows->len, play_row_at, &pool);
    pthread_mutex_destroy(&pool.lock);
    leave_out_slow(&pool);
    return !pool.interrupted;
}
