/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of this machine: kernels alone.
 */
#pragma once

#include "runtime/executor.h"

/* More than the caches of a core and its share of those that cores have in common. */
#define LH_MEASURE_FLUSH_BYTES (UINT64_C(32) << 20)

/* How one number is made of several timings. */
typedef enum {
    LH_STATISTIC_MEDIAN,
    LH_STATISTIC_BEST, /* the least, for a machine with other load, which only ever adds; of kernels
                          the least time on a core, so that time without one does not count */
} LhStatistic;

/* "median", "best"; NULL-terminated. */
extern const char *const lh_statistic_names[];

typedef struct {
    uint32_t kernel_set; /* of lh_device_cpu */
    LhStatistic statistic;
    uint32_t repeats; /* timings of each number, after one that does not count */
    uint32_t threads; /* that call a kernel at the same time, as ranks do */
    bool pin;         /* each of them on a core of its own */
    /* Other processes that measure the same: they call the kernel at the same moment, or, those
     * that share cores, in so many turns, of which this process has the @turn-th. NULL: there are
     * none. Borrowed. */
    const LhOpenControl *others;
    uint32_t turns, turn; /* @turns 0: 1 */
    /* A thread sleeps at least so long before each call, as a rank does that waits for a message:
     * caches, and what the core is clocked at, are not what they are in the midst of work. 0: it
     * does not. */
    double idle_s;
    /* [threads][LH_MEASURE_FLUSH_BYTES]: what a thread puts into its caches before each call. Pages
     * of it that were touched before need not come from the system again. NULL: there was no memory
     * for it, and nothing is measured. Borrowed. */
    unsigned char *flush;
} LhMeasureParams;

/* The statistic of @count > 0 values, which are put in order. */
double lh_statistic(LhStatistic statistic, double *values, size_t count);

/*
 * Seconds of one call of @kernel while the other threads call it too, each with operands of its own
 * that are in no cache of its core: the median over threads of the statistic. Activations of
 * @dtype. LH_ERROR_NO if it cannot be called, LH_ERROR_RUNTIME if there is no memory for it,
 * or another process does not answer.
 */
bool lh_measure_kernel(const LhMeasureParams *params, LhKernelId kernel, const LhKernelArgs *args,
                       LhDtype dtype, double *seconds, GError **error);

/* How a kernel's operand is stored there, and how many elements it has at most. */
enum lh_storage lh_measure_storage(const LhOperand *operand, LhDtype dtype);
uint64_t lh_measure_elements(const LhKernel *kernel, const LhKernelArgs *args, unsigned operand);

/* The operand in host memory, aligned to LH_SCRATCH_ALIGN, with numbers that are valid as any, and
 * room for statistics in @bytes. Caller frees with g_aligned_free(). */
unsigned char *lh_measure_operand(const LhKernel *kernel, const LhKernelArgs *args,
                                  unsigned operand, LhDtype dtype, uint64_t *bytes);
