/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels. nvcc embeds a fat binary in every object, with the PTX among others, and code that
 * registers it and its kernels before main(); this file replaces the functions that this code
 * calls. A kernel runs from its PTX, which GPUs newer than the object would compile. The layout of
 * fat binaries is not documented: it was derived from those of nvcc 13.0, and any other layout is
 * rejected.
 *
 * Launches that the guide's table of technical specifications does not allow fail as in CUDA:
 * blocks of more than 1024 threads or 64 in z, grids of more than 65535 blocks in y or z, more
 * dynamic shared memory than cudaFuncSetAttribute allowed the function (48 KiB without).
 */
#include "standin_kernels.h"
#include "standin_private.h"

#include <math.h>
#include <string.h>

#define FUNCTIONS_MAX 4096
#define MODULES_MAX 256
#define ERROR_BYTES 256
#define SHARED_BYTES (48 << 10)
#define SHARED_BYTES_MAX (227 << 10)
#define THREADS_MAX 1024
#define THREADS_Z_MAX 64
#define BLOCKS_YZ_MAX 65535
#define FAT_MAGIC 0xBA55ED50U
#define FAT_KIND_PTX 1
#define LABEL_CHARS 60
#define SLOT_SHIFT 32
#define NS_PER_S 1e9

/* The header of a fat binary, and of each of its entries. */
typedef struct {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes;
} FatHeader;

typedef struct {
    uint16_t kind, flags;
    uint32_t header_bytes;
    uint64_t bytes;
} FatEntry;

typedef struct {
    int magic, version;
    const unsigned char *data;
    void *file;
} FatWrapper;

typedef struct {
    ptx_module *module; /* NULL: there was no readable one */
    char error[ERROR_BYTES];
} Module;

typedef struct {
    const void *stub; /* the host function that represents the kernel */
    const Module *module;
    const ptx_kernel *kernel;
    const char *name;
    int shared_bytes_max;
} Function;

/* Filled before main(), by one thread. */
static Module modules[MODULES_MAX];
static uint32_t modules_count;
static Function functions[FUNCTIONS_MAX];
static uint32_t functions_count;

static ptx_counts kernel_counts; /* since the start */

/* A launch between <<< >>> and the stub. */
static __thread struct {
    dim3 grid, block;
    size_t shared_bytes;
    cudaStream_t stream;
} pushed;

/* Functions called by the code that nvcc generates; no C header declares them. */
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **module);
void __cudaUnregisterFatBinary(void **module);
void __cudaRegisterFunction(void **module, const char *stub, char *function, const char *name,
                            int threads, uint3 *thread, uint3 *block, dim3 *block_size,
                            dim3 *grid_size, int *warp);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
                               size_t shared_bytes, cudaStream_t stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *stub);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                     struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream);

/* ---- registering ---- */

static void
read_ptx(Module *m, const unsigned char *data)
{
    const FatHeader *header = (const FatHeader *)(const void *)data;
    const unsigned char *at = data + header->header_bytes;
    const unsigned char *end = at + header->bytes;

    g_strlcpy(m->error, "the fat binary has no PTX", sizeof(m->error));
    if (header->magic != FAT_MAGIC) {
        g_strlcpy(m->error, "this is no fat binary", sizeof(m->error));
        return;
    }
    while (at < end && m->module == NULL) {
        const FatEntry *e = (const FatEntry *)(const void *)at;
        const char *text = (const char *)at + e->header_bytes;

        if (e->kind == FAT_KIND_PTX)
            m->module = ptx_module_new(text, strnlen(text, e->bytes), m->error);
        at += e->header_bytes + e->bytes;
    }
}

void **
__cudaRegisterFatBinary(void *wrapper)
{
    Module *m = &modules[modules_count++];

    g_assert(modules_count <= MODULES_MAX);
    read_ptx(m, ((const FatWrapper *)wrapper)->data);
    return (void **)m;
}

void
__cudaRegisterFatBinaryEnd(void **module)
{
    (void)module;
}

void
__cudaUnregisterFatBinary(void **module)
{
    Module *m = (Module *)module;

    ptx_module_free(m->module);
    m->module = NULL;
}

void /* NOLINTNEXTLINE(readability-function-size): CUDA's own */
__cudaRegisterFunction(void **module, const char *stub, char *function, const char *name,
                       int threads, uint3 *thread, uint3 *block, dim3 *block_size, dim3 *grid_size,
                       int *warp)
{
    Function *f = &functions[functions_count++];
    const Module *m = (const Module *)module;

    (void)function;
    (void)threads;
    (void)thread;
    (void)block;
    (void)block_size;
    (void)grid_size;
    (void)warp;
    g_assert(functions_count <= FUNCTIONS_MAX);
    f->stub = stub;
    f->module = m;
    f->kernel = m->module == NULL ? NULL : ptx_find(m->module, name);
    f->name = name;
    f->shared_bytes_max = SHARED_BYTES;
}

void
standin_kernels_start(void)
{
    kernel_counts = (ptx_counts){ 0 };
    for (uint32_t i = 0; i < functions_count; i++)
        functions[i].shared_bytes_max = SHARED_BYTES;
}

const ptx_counts *
standin_kernel_counts(void)
{
    return &kernel_counts;
}

static Function *
function_of(const void *stub)
{
    for (uint32_t i = 0; i < functions_count; i++) {
        if (functions[i].stub == stub)
            return &functions[i];
    }
    return NULL;
}

/* ---- launches ---- */

typedef struct {
    StandinOp op;
    const ptx_kernel *kernel;
    ptx_launch launch;
    unsigned char *params; /* owned */
    void **args;           /* owned; into params */
    uint32_t turn;
} KernelOp;

static bool
touch(void *data, const void *at, uint32_t bytes, bool write)
{
    KernelOp *k = data;

    return standin_touch(&k->op, k->turn, at, bytes, write);
}

static bool
run_kernel(StandinOp *op)
{
    KernelOp *k = (KernelOp *)op;
    const ptx_memory memory = { k, touch };
    const uint64_t begin_ns = (uint64_t)llround(op->begin_s * NS_PER_S);
    char error[ERROR_BYTES] = "";
    uint64_t timer_ns = begin_ns;

    k->turn = standin_turn(op);
    k->launch.args = k->args;
    k->launch.timer_ns = &timer_ns;
    standin_counted.kernels++;
    if (standin_sticky != cudaSuccess ||
        ptx_run(k->kernel, &k->launch, &memory, &kernel_counts, error)) {
        /* A kernel that waits for the clock ends at its last read of it. */
        if (timer_ns > begin_ns)
            op->end_s = MAX(op->end_s, (double)(timer_ns - 1) / NS_PER_S);
        return true;
    }
    standin_finding("%s failed: %s", op->label, error);
    standin_sticky = cudaErrorIllegalAddress;
    return true;
}

static void
clear_kernel(StandinOp *op)
{
    KernelOp *k = (KernelOp *)op;

    g_free(k->params);
    g_free(k->args);
}

static const StandinKind kind_kernel = {
    .name = "kernel",
    .run = run_kernel,
    .clear = clear_kernel,
};

/* Arguments are copied at the launch (the guide, Function Parameters). */
static void
copy_args(KernelOp *k, void **args)
{
    const uint32_t count = ptx_params_count(k->kernel);
    uint32_t bytes = 0;

    for (uint32_t i = 0; i < count; i++)
        bytes = MAX(bytes, ptx_param_offset(k->kernel, i) + ptx_param_bytes(k->kernel, i));
    k->params = g_malloc0(MAX(bytes, 1));
    k->args = g_new(void *, MAX(count, 1));
    for (uint32_t i = 0; i < count; i++) {
        k->args[i] = k->params + ptx_param_offset(k->kernel, i);
        memcpy(k->args[i], args[i], ptx_param_bytes(k->kernel, i));
    }
}

static bool
is_allowed(const Function *f, dim3 grid, dim3 block, size_t shared_bytes)
{
    const uint64_t threads = (uint64_t)block.x * block.y * block.z;

    return grid.x > 0 && grid.y > 0 && grid.z > 0 && grid.x <= INT32_MAX &&
           grid.y <= BLOCKS_YZ_MAX && grid.z <= BLOCKS_YZ_MAX && threads > 0 &&
           threads <= THREADS_MAX && block.z <= THREADS_Z_MAX &&
           shared_bytes <= (size_t)f->shared_bytes_max;
}

static cudaError_t
launch(const Function *f, dim3 grid, dim3 block, void **args, size_t shared_bytes,
       cudaStream_t stream)
{
    KernelOp *k;

    if (f == NULL || f->kernel == NULL) {
        standin_finding("a kernel has no PTX that can be run: %s",
                        f == NULL ? "it is not registered" : f->module->error);
        return cudaErrorInvalidDeviceFunction;
    }
    if (!is_allowed(f, grid, block, shared_bytes))
        return cudaErrorInvalidConfiguration;
    if (stream == NULL || stream->device != standin_device) {
        standin_finding("a kernel is launched on the default stream, or on another device's");
        return cudaErrorInvalidResourceHandle;
    }
    k = standin_op_new(&kind_kernel, stream, sizeof(*k), g_strndup(f->name, LABEL_CHARS));
    k->kernel = f->kernel;
    k->launch = (ptx_launch){ .grid = { grid.x, grid.y, grid.z },
                              .block = { block.x, block.y, block.z },
                              .shared_bytes = (uint32_t)shared_bytes };
    /* The same in every order, so that runs give identical bits. */
    if (!standin_options.alike)
        k->launch.seed = (uint64_t)stream->number << SLOT_SHIFT | stream->kernels++;
    standin_clock_launch(&k->op, k->op.label, k->launch.grid);
    copy_args(k, args);
    return standin_enqueue(&k->op);
}

cudaError_t
__cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared_bytes,
                   cudaStream_t stream)
{
    cudaError_t code;

    standin_lock();
    code = launch((const Function *)kernel, grid, block, args, shared_bytes, stream);
    standin_unlock();
    return standin_result(code);
}

cudaError_t
cudaLaunchKernel(const void *stub, dim3 grid, dim3 block, void **args, size_t shared_bytes,
                 cudaStream_t stream)
{
    cudaError_t code;

    standin_lock();
    code = launch(function_of(stub), grid, block, args, shared_bytes, stream);
    standin_unlock();
    return standin_result(code);
}

cudaError_t
__cudaGetKernel(cudaKernel_t *kernel, const void *stub)
{
    *kernel = (cudaKernel_t)function_of(stub);
    return standin_result(*kernel == NULL ? cudaErrorInvalidDeviceFunction : cudaSuccess);
}

unsigned
__cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, struct CUstream_st *stream)
{
    pushed.grid = grid;
    pushed.block = block;
    pushed.shared_bytes = shared_bytes;
    pushed.stream = stream;
    return 0;
}

cudaError_t
__cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream)
{
    *grid = pushed.grid;
    *block = pushed.block;
    *shared_bytes = pushed.shared_bytes;
    *(cudaStream_t *)stream = pushed.stream;
    return cudaSuccess;
}

static int
shared_bytes_max(void)
{
    return standin_options.shared_bytes == 0 ? SHARED_BYTES_MAX : (int)standin_options.shared_bytes;
}

cudaError_t
cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    if (attribute != cudaDevAttrMaxSharedMemoryPerBlockOptin)
        return standin_result(cudaErrorInvalidValue);
    if (device < 0 || device >= (int)standin_options.devices)
        return standin_result(cudaErrorInvalidDevice);
    *value = shared_bytes_max();
    return standin_result(cudaSuccess);
}

cudaError_t
cudaFuncSetAttribute(const void *stub, enum cudaFuncAttribute attribute, int value)
{
    Function *f = function_of(stub);

    if (f == NULL)
        return standin_result(cudaErrorInvalidDeviceFunction);
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
        value > shared_bytes_max())
        return standin_result(cudaErrorInvalidValue);
    f->shared_bytes_max = value;
    return standin_result(cudaSuccess);
}
