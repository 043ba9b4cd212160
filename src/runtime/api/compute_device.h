/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A compute device: memory, streams, kernels, copies, and marks, which record a point of a stream.
 * The executor uses nothing else of a device and never touches its memory.
 *
 * Operations on a stream are enqueued: the call may return before the operation is done, and only a
 * mark enqueued after it tells when it is. A stream runs its operations in order; after a failure
 * it runs no more. Different threads may use different streams at once, and every other function
 * here; one thread at a time uses a stream. Functions that return false set @error
 * (LH_ERROR_RUNTIME).
 */
#pragma once

#include "base/units.h"
#include "kernels/call.h"

#include <glib.h>

typedef struct _LhDeviceState LhDeviceState;
typedef void *LhDeviceStream;
typedef void *LhDeviceMark; /* a point of a stream */

/* An elementwise sum of tensors, accumulated in fp32 in the order given and rounded once. */
typedef struct {
    unsigned char *const *terms; /* [count], device memory; borrowed until the call returns */
    uint32_t count;
    unsigned char *sum;
    uint64_t elements;
    enum lh_storage storage;
} LhDeviceSum;

/* A deadline: max(begun, epoch + others_ps) + took_ps. */
typedef struct {
    const unsigned char *epoch, *begun; /* cells of device memory that hold time stamps */
    LhTime others_ps, took_ps;
} LhDevicePace;

typedef struct {
    uint32_t rank; /* rank that opens the device; ranks may share one device, and each opens it */
    uint32_t ordinal;    /* index of the device on a machine with several */
    bool alone;          /* the only rank of its process; the process may see only its own device */
    uint32_t kernel_set; /* index into kernel_sets */
    uint64_t memory_bytes; /* most device memory in use at a time; 0: unknown */
    bool pin;              /* pin compute streams to cores, where the system allows it */
} LhDeviceParams;

typedef struct {
    const char *name;
    const char *const
        *kernel_sets; /* implementations of the kernels; NULL-terminated, default first */
    /* Bit mask of kernel sets whose backward passes accumulate in no fixed order, so that repeated
     * runs may differ in the last bits. */
    uint32_t unordered_sets;
    double tick_s;    /* resolution of time() */
    bool host_memory; /* its memory is host memory: the host may read and write it */
    /* Whether this machine has such a device; NULL: every machine has. */
    bool (*probe)(GError **error);
    /* Describes this machine's devices for people: the driver in @driver (caller frees) and a line
     * for each device in @devices (of char *). False with @error, and with what was found so far,
     * if no device can be used. NULL: nothing to report. */
    bool (*survey)(char **driver, GPtrArray *devices, GError **error);
    LhDeviceState *(*open)(const LhDeviceParams *params, GError **error);
    void (*close)(LhDeviceState *device); /* all streams must be idle */

    /* Allocates memory aligned to LH_SCRATCH_ALIGN, with undefined contents. */
    unsigned char *(*alloc)(LhDeviceState *device, uint64_t bytes, GError **error);
    void (*release)(LhDeviceState *device, unsigned char *memory); /* no longer in use */

    LhDeviceStream (*stream)(LhDeviceState *device, bool compute, GError **error);
    void (*end_stream)(LhDeviceState *device, LhDeviceStream stream);

    bool (*load)(LhDeviceState *device, unsigned char *to, const void *from, uint64_t bytes,
                 LhDeviceStream stream, GError **error);
    bool (*store)(LhDeviceState *device, void *to, const unsigned char *from, uint64_t bytes,
                  LhDeviceStream stream, GError **error);
    /* Copies within the device, or from another rank's device of the same kind. */
    bool (*copy)(LhDeviceState *device, unsigned char *to, const unsigned char *from,
                 uint64_t bytes, LhDeviceStream stream, GError **error);
    bool (*fill)(LhDeviceState *device, unsigned char *to, int byte, uint64_t bytes,
                 LhDeviceStream stream, GError **error);

    /*
     * Enqueues a kernel with operands (and scratch) in device memory; what @call points to is
     * borrowed until the call returns. LH_STATUS_UNSUPPORTED: the device lacks the kernel.
     */
    enum lh_status (*call)(LhDeviceState *device, LhKernelId kernel, const LhCall *call,
                           LhDeviceStream stream);
    /* Scratch memory that a call with these operands needs; @call's own scratch pointer is
     * ignored. */
    uint64_t (*scratch_bytes)(const LhDeviceState *device, LhKernelId kernel, const LhCall *call);
    /* The reason that the last call failed, or NULL if unknown; caller frees. NULL function: never
     * known. */
    char *(*why)(LhDeviceState *device);
    enum lh_status (*sum)(LhDeviceState *device, const LhDeviceSum *sum, LhDeviceStream stream);

    LhDeviceMark (*mark)(LhDeviceState *device, LhDeviceStream stream, GError **error);
    /* Orders everything enqueued on @stream from now on after @mark, which may be another rank's
     * and may be released at once. */
    bool (*wait)(LhDeviceState *device, LhDeviceStream stream, LhDeviceMark mark, GError **error);
    int (*passed)(LhDeviceState *device, LhDeviceMark mark,
                  GError **error); /* 1; 0; -1: it failed */
    /* Time from one mark to the other; both have passed, on devices of the same ordinal. */
    bool (*time)(LhDeviceState *device, LhDeviceMark from, LhDeviceMark to, LhTime *ps,
                 GError **error);
    void (*unmark)(LhDeviceState *device, LhDeviceMark mark);

    /* Writes the time of the device's own clock (microsecond resolution) to @cell, 8 bytes of
     * device memory. stamp and pace are both NULL if the device has no clock. */
    bool (*stamp)(LhDeviceState *device, unsigned char *cell, LhDeviceStream stream,
                  GError **error);
    /* Delays everything enqueued on @stream from now on until that deadline. */
    bool (*pace)(LhDeviceState *device, const LhDevicePace *pace, LhDeviceStream stream,
                 GError **error);
} LhRunDevice;

/* A device and the stream of it that one thread uses. */
typedef struct {
    const LhRunDevice *device;
    LhDeviceState *state;
    LhDeviceStream stream;
} LhPlaceOfWork;

/*
 * Waits until a stream has passed @mark; does not release the mark. False if the device failed
 * (with @error) or if @stopping(@data) says that the run is being stopped (without); @stopping may
 * be NULL.
 */
bool lh_device_pass(const LhRunDevice *device, LhDeviceState *state, LhDeviceMark mark,
                    bool (*stopping)(void *data), void *data, GError **error);

/* Likewise, until everything enqueued on the stream is done. */
bool lh_device_finish(const LhRunDevice *device, LhDeviceState *state, LhDeviceStream stream,
                      bool (*stopping)(void *data), void *data, GError **error);

extern const LhRunDevice lh_device_cpu;
extern const LhRunDevice lh_device_cuda;
