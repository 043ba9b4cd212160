/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timing of kernels alone on this machine's processor.
 */
#pragma once

#include "runtime/executor.h"

/* Exceeds a core's private caches plus its share of the shared ones. */
#define LH_MEASURE_FLUSH_BYTES (UINT64_C(32) << 20)

/* Statistic that summarises several timings. */
typedef enum {
    LH_STATISTIC_MEDIAN,
    /* The minimum, for a machine with other load, which only adds time; for kernels the minimum
     * CPU time of the thread, which excludes time without a core. */
    LH_STATISTIC_BEST,
} LhStatistic;

/* "median", "best"; NULL-terminated. */
extern const char *const lh_statistic_names[];

typedef struct {
    uint32_t kernel_set; /* of lh_device_cpu */
    LhStatistic statistic;
    uint32_t repeats; /* counted timings of each number, after a warm-up */
    uint32_t threads; /* threads that call the kernel at the same time, as ranks do */
    bool pin;         /* pin each thread to a core */
    /* Other processes that measure the same; borrowed; NULL: none. They call the kernel at the same
     * moment or, where processes share cores, in @turns groups one after another; this one is in
     * group @turn. */
    const LhOpenControl *others;
    uint32_t turns, turn; /* @turns 0 means 1 */
    /* A thread sleeps at least this long before each call, as a rank does that waits for a message:
     * afterwards caches and core clocks differ from those during continuous work. 0: no sleep. */
    double idle_s;
    /* [threads][LH_MEASURE_FLUSH_BYTES], borrowed: memory that each thread writes before each call
     * to flush its caches. Reusing it avoids fresh page faults. NULL: allocation failed, and
     * measuring fails. */
    unsigned char *flush;
} LhMeasureParams;

/* Returns the statistic of @count > 0 values, which it sorts. */
double lh_statistic(LhStatistic statistic, double *values, size_t count);

/*
 * Measures one call of @kernel, in seconds, while the other threads call it too. Each thread has
 * its own operands, in no cache of its core, with activations of @dtype. The result is the median
 * over threads of the statistic. LH_ERROR_NO if the kernel cannot be called; LH_ERROR_RUNTIME if
 * there is no memory for it, or if another process does not answer.
 */
bool lh_measure_kernel(const LhMeasureParams *params, LhKernelId kernel, const LhKernelArgs *args,
                       LhDtype dtype, double *seconds, GError **error);

/* Storage type of a kernel's operand in these measurements, and an upper bound of its elements. */
enum lh_storage lh_measure_storage(const LhOperand *operand, LhDtype dtype);
uint64_t lh_measure_elements(const LhKernel *kernel, const LhKernelArgs *args, unsigned operand);

/* Allocates the operand in host memory, aligned to LH_SCRATCH_ALIGN, and fills it with values that
 * are valid for any operand. *@bytes has room for fp32, whatever its storage. Caller frees with
 * g_aligned_free(). */
unsigned char *lh_measure_operand(const LhKernel *kernel, const LhKernelArgs *args,
                                  unsigned operand, LhDtype dtype, uint64_t *bytes);
