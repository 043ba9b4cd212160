/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few things that a device does: memory, streams, kernels, copies, and marks, which say how far
 * a stream is. The executor knows no more of a device, and never touches its memory.
 *
 * What is asked of a stream is enqueued: the call may return before it is done, and only a mark
 * that was set behind it tells when it is. What one stream does, it does in order; one that has
 * failed does nothing more. Different streams may be used by different threads at once, and so may
 * everything else here; one stream is used by one thread at a time. A false sets @error
 * (LH_ERROR_RUNTIME).
 */
#pragma once

#include "base/units.h"
#include "kernels/call.h"

#include <glib.h>

typedef struct _LhDeviceState LhDeviceState;
typedef void *LhDeviceStream;
typedef void *LhDeviceMark; /* a point of a stream */

/* A sum of tensors element by element, in fp32, in the order given, rounded once. */
typedef struct {
    unsigned char *const *terms; /* [count], device memory; borrowed until the call returns */
    uint32_t count;
    unsigned char *sum;
    uint64_t elements;
    enum lh_storage storage;
} LhDeviceSum;

/* A moment: @took_ps behind the later of two, when @begun was stamped, and @others_ps behind when
 * @epoch was. */
typedef struct {
    const unsigned char *epoch, *begun; /* cells of device memory */
    LhTime others_ps, took_ps;
} LhDevicePace;

typedef struct {
    uint32_t rank;         /* whose device it is: ranks may share one, and each opens it */
    uint32_t ordinal;      /* which of those of this machine, where it has several */
    bool alone;            /* the only rank of its process, which may see its own device alone */
    uint32_t kernel_set;   /* index into kernel_sets */
    uint64_t memory_bytes; /* so much of its memory is used at a time; 0: unknown */
    bool pin;              /* keep compute where it is, where the system allows it */
} LhDeviceParams;

typedef struct {
    const char *name;
    const char *const
        *kernel_sets; /* implementations of the kernels; NULL-terminated, default first */
    /* A set of bits: kernel sets whose backward passes add up in no fixed order, so that runs may
     * differ in the last bits. */
    uint32_t unordered_sets;
    double tick_s;    /* what time() tells apart */
    bool host_memory; /* its memory is the host's: anyone may read and write it */
    /* Whether this machine has one; NULL: every machine has. */
    bool (*probe)(GError **error);
    /* Says of this machine, for people, what drives such devices (@driver; caller frees), and a
     * line for each of them (@devices, of char *). False with @error, and what was found until
     * then, if none can be used. NULL: there is nothing to say. */
    bool (*survey)(char **driver, GPtrArray *devices, GError **error);
    LhDeviceState *(*open)(const LhDeviceParams *params, GError **error);
    void (*close)(LhDeviceState *device); /* when no stream has anything left to do */

    /* Aligned to LH_SCRATCH_ALIGN; what it holds is undefined. */
    unsigned char *(*alloc)(LhDeviceState *device, uint64_t bytes, GError **error);
    void (*release)(LhDeviceState *device, unsigned char *memory); /* nothing uses it any more */

    LhDeviceStream (*stream)(LhDeviceState *device, bool compute, GError **error);
    void (*end_stream)(LhDeviceState *device, LhDeviceStream stream);

    bool (*load)(LhDeviceState *device, unsigned char *to, const void *from, uint64_t bytes,
                 LhDeviceStream stream, GError **error);
    bool (*store)(LhDeviceState *device, void *to, const unsigned char *from, uint64_t bytes,
                  LhDeviceStream stream, GError **error);
    /* Within the device, or from that of another rank of the same kind. */
    bool (*copy)(LhDeviceState *device, unsigned char *to, const unsigned char *from,
                 uint64_t bytes, LhDeviceStream stream, GError **error);
    bool (*fill)(LhDeviceState *device, unsigned char *to, int byte, uint64_t bytes,
                 LhDeviceStream stream, GError **error);

    /*
     * Calls a kernel with operands (and scratch) in device memory; what @call points to is borrowed
     * until the call returns. LH_STATUS_UNSUPPORTED: the device lacks it.
     */
    enum lh_status (*call)(LhDeviceState *device, LhKernelId kernel, const LhCall *call,
                           LhDeviceStream stream);
    /* Of a call with its operands; its own scratch memory is not looked at. */
    uint64_t (*scratch_bytes)(const LhDeviceState *device, LhKernelId kernel, const LhCall *call);
    /* What is known of why the last call was not OK, or NULL; caller frees. NULL: never anything.
     */
    char *(*why)(LhDeviceState *device);
    enum lh_status (*sum)(LhDeviceState *device, const LhDeviceSum *sum, LhDeviceStream stream);

    LhDeviceMark (*mark)(LhDeviceState *device, LhDeviceStream stream, GError **error);
    /* What is asked of @stream from now on comes after @mark, which may be another rank's; it may
     * be given back at once. */
    bool (*wait)(LhDeviceState *device, LhDeviceStream stream, LhDeviceMark mark, GError **error);
    int (*passed)(LhDeviceState *device, LhDeviceMark mark,
                  GError **error); /* 1; 0; -1: it failed */
    /* From one mark to another; both have passed, on devices of the same ordinal. */
    bool (*time)(LhDeviceState *device, LhDeviceMark from, LhDeviceMark to, LhTime *ps,
                 GError **error);
    void (*unmark)(LhDeviceState *device, LhDeviceMark mark);

    /* The device's own clock, to the microsecond; NULL, both: it has none. Notes the time in @cell,
     * 8 bytes of device memory. */
    bool (*stamp)(LhDeviceState *device, unsigned char *cell, LhDeviceStream stream,
                  GError **error);
    /* What is asked of @stream from now on begins no earlier than that moment. */
    bool (*pace)(LhDeviceState *device, const LhDevicePace *pace, LhDeviceStream stream,
                 GError **error);
} LhRunDevice;

/* A device as one thread uses it. */
typedef struct {
    const LhRunDevice *device;
    LhDeviceState *state;
    LhDeviceStream stream;
} LhPlaceOfWork;

/*
 * Waits until a stream has passed a mark, which is not given back. False if the device failed (with
 * @error) or, without one, if @stopping(@data) says that the run is being stopped; @stopping may be
 * NULL.
 */
bool lh_device_pass(const LhRunDevice *device, LhDeviceState *state, LhDeviceMark mark,
                    bool (*stopping)(void *data), void *data, GError **error);

/* The same with everything that the stream was asked for. */
bool lh_device_finish(const LhRunDevice *device, LhDeviceState *state, LhDeviceStream stream,
                      bool (*stopping)(void *data), void *data, GError **error);

extern const LhRunDevice lh_device_cpu;
extern const LhRunDevice lh_device_cuda;
