/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executes PTX as written by nvcc on the CPU: the results of a kernel, without a GPU.
 *
 * The 32 lanes of a warp run in step; of diverged lanes those at the lowest address run first.
 * Blocks run one after another in an order drawn from the seed, the warps of a block in turns of
 * random length. What the hardware leaves open is drawn as unfavourably as the PTX manual allows:
 * copies to shared memory (cp.async) land as late as possible, ex2.approx and the like have errors
 * up to their documented bounds, and the sums within an mma and between atomics have no fixed
 * order.
 *
 * Every access is checked: it must be inside an allocation, aligned, and in shared memory ordered
 * by a barrier after conflicting accesses of other threads of the block, including those of the
 * same warp.
 *
 * Not modelled: time, caches, the weak order of global memory between blocks, blocks that wait for
 * each other.
 *
 * Modules share nothing: threads may run kernels of different modules concurrently, and kernels of
 * one module too if the module has no variables of its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ptx_module ptx_module;
typedef struct ptx_kernel ptx_kernel;

/* Counts of a launch; ptx_run adds to them. */
typedef struct {
    uint64_t instructions; /* per warp */
    uint64_t mma;          /* mma instructions among them */
    /* Requests of a warp to shared memory; the waves of 128 bytes they take with bank conflicts;
     * and the waves they would take without. */
    uint64_t shared_requests, shared_waves, shared_waves_least;
    /* Requests of a warp to global memory; the sectors of 32 bytes they touch; and the fewest
     * sectors that could hold those bytes. */
    uint64_t global_requests, global_sectors, global_sectors_least;
} ptx_counts;

/* Called before each access to global memory. Lanes with contiguous bytes may be passed as one
 * access of up to 512 bytes. False rejects the access and stops the launch. */
typedef struct {
    void *data;
    bool (*touch)(void *data, const void *at, uint32_t bytes, bool write);
} ptx_memory;

typedef struct {
    uint32_t grid[3], block[3];
    uint32_t shared_bytes; /* dynamic; follows the kernel's static shared memory */
    void **args;           /* a pointer to each parameter, as for cudaLaunchKernel */
    uint64_t seed;         /* of all random choices */
    /* Value of %globaltimer, ns: a read advances it by 1, nanosleep by its argument. NULL: it
     * counts reads. */
    uint64_t *timer_ns;
    uint64_t instructions_max; /* of all warps, after which the launch stops as hung; 0: 2^40 */
} ptx_launch;

/* NULL, with a reason in @error, if the text has anything unknown or invalid. */
ptx_module *ptx_module_new(const char *text, size_t length, char error[256]);
void ptx_module_free(ptx_module *module);

/* The kernel of that (mangled) name, or NULL. Borrowed from the module. */
const ptx_kernel *ptx_find(const ptx_module *module, const char *name);

/* Kernels by number, 0 to ptx_kernels_count - 1, in the order of the text. */
uint32_t ptx_kernels_count(const ptx_module *module);
const ptx_kernel *ptx_kernel_at(const ptx_module *module, uint32_t index);

/* ".version" as 90 for 9.0, and ".target" as written, such as "sm_90a". */
uint32_t ptx_version(const ptx_module *module);
const char *ptx_target(const ptx_module *module);

/* Memory of a .global or .const variable of the module, and its size in @bytes; NULL if there is
 * none. */
void *ptx_variable(const ptx_module *module, const char *name, size_t *bytes);

const char *ptx_kernel_name(const ptx_kernel *kernel);
uint32_t ptx_kernel_shared_bytes(const ptx_kernel *kernel); /* static */
uint32_t ptx_kernel_local_bytes(const ptx_kernel *kernel);  /* per thread */
/* Maximum threads per block (.maxntid, .reqntid), 0 if the text gives none. */
uint32_t ptx_kernel_threads_max(const ptx_kernel *kernel);

uint32_t ptx_params_count(const ptx_kernel *kernel);
uint32_t ptx_param_offset(const ptx_kernel *kernel, uint32_t index);
uint32_t ptx_param_bytes(const ptx_kernel *kernel, uint32_t index);

/* False, with a reason in @error, if the kernel did something illegal. @counts may be NULL. Memory
 * keeps what was written before the error. */
bool ptx_run(const ptx_kernel *kernel, const ptx_launch *launch, const ptx_memory *memory,
             ptx_counts *counts, char error[256]);
