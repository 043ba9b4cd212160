/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executes PTX, as nvcc wrote it, on the CPU: what a kernel computes, without a GPU.
 *
 * The 32 lanes of a warp run in step; lanes that went apart are taken by the least address first.
 * Blocks run one after another in an order drawn from the seed, warps of a block by turns of a
 * drawn length. What the hardware leaves open is drawn as unkindly as the PTX manual allows: copies
 * to shared memory (cp.async) land as late as they may, ex2.approx and its like are off by up to
 * their documented bounds, and the sums within an mma and between atomics have no fixed order.
 *
 * Every access is checked: inside an allocation, aligned, and in shared memory ordered by a barrier
 * after what other threads of the block, also those of the same warp, did to these bytes. What is
 * not modelled: time, caches, the weak order of global memory between blocks, blocks that wait for
 * each other.
 *
 * Nothing here is shared between modules: threads may run kernels of different modules at a time,
 * and kernels of one module too if the module has no variables of its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ptx_module ptx_module;
typedef struct ptx_kernel ptx_kernel;

/* What a launch did; ptx_run adds to what is there. */
typedef struct {
    uint64_t instructions; /* of a warp */
    uint64_t mma;          /* of them */
    /* Requests of a warp to shared memory, the waves of 128 bytes that they take with the banks'
     * conflicts, and what they would take without. */
    uint64_t shared_requests, shared_waves, shared_waves_least;
    /* Requests of a warp to global memory, the sectors of 32 bytes that they touch, and the fewest
     * that could hold the bytes that they touch. */
    uint64_t global_requests, global_sectors, global_sectors_least;
} ptx_counts;

/* Asked about global memory before each access. Lanes whose bytes lie end to end may come as one
 * access of up to 512 bytes. False: the access is not allowed, and the launch stops. */
typedef struct {
    void *data;
    bool (*touch)(void *data, const void *at, uint32_t bytes, bool write);
} ptx_memory;

typedef struct {
    uint32_t grid[3], block[3];
    uint32_t shared_bytes; /* dynamic; behind the kernel's static ones */
    void **args;           /* one pointer to each parameter, as cudaLaunchKernel has them */
    uint64_t seed;         /* of all that is drawn */
    /* What %globaltimer says, in ns: a read moves it on by 1, nanosleep by what it is asked for.
     * NULL: it counts reads. */
    uint64_t *timer_ns;
    uint64_t instructions_max; /* of warps, then the launch stops as hung; 0: 2^40 */
} ptx_launch;

/* NULL, with a reason in @error, if the text has anything that is not known here or is broken. */
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

/* Memory of a .global or .const variable of the module, with its bytes; NULL: there is none. */
void *ptx_variable(const ptx_module *module, const char *name, size_t *bytes);

const char *ptx_kernel_name(const ptx_kernel *kernel);
uint32_t ptx_kernel_shared_bytes(const ptx_kernel *kernel); /* static */
uint32_t ptx_kernel_local_bytes(const ptx_kernel *kernel);  /* of a thread */
/* Threads of a block: at most (.maxntid, .reqntid), 0 if the text does not say. */
uint32_t ptx_kernel_threads_max(const ptx_kernel *kernel);

uint32_t ptx_params_count(const ptx_kernel *kernel);
uint32_t ptx_param_offset(const ptx_kernel *kernel, uint32_t index);
uint32_t ptx_param_bytes(const ptx_kernel *kernel, uint32_t index);

/* False, with a reason in @error, if the kernel did something that is not allowed. @counts may be
 * NULL. Memory keeps what was written until then. */
bool ptx_run(const ptx_kernel *kernel, const ptx_launch *launch, const ptx_memory *memory,
             ptx_counts *counts, char error[256]);
