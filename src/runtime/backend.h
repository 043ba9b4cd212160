/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backends: combinations of control plane, data plane and device that can run a program. A new
 * backend is a new row; the executor does not depend on which one it has.
 */
#pragma once

#include "runtime/api/compute_device.h"
#include "runtime/api/control.h"
#include "runtime/api/links.h"
#include "runtime/api/transport.h"

typedef struct {
    const char *name;
    const LhControl *control;
    const LhTransport *transport; /* engine of threads (thread_engine.c) ... */
    const LhLinks *links;         /* ... or submission engine (submit.c) */
    const LhRunDevice *device;
    bool packed; /* the parts of a slot are contiguous where possible, without canaries */
} LhBackend;

extern const LhBackend lh_backend_cpu;
extern const LhBackend lh_backend_mpi;
extern const LhBackend lh_backend_tcp;
extern const LhBackend lh_backend_cuda;
extern const LhBackend lh_backend_nccl;

/* NULL-terminated; the default first. The names are in the same order: "cpu", "mpi", "tcp", "cuda",
 * "nccl". */
extern const LhBackend *const lh_backends[];
extern const char *const lh_backend_names[];

/* The kernel sets of all devices; NULL-terminated. */
extern const char *const lh_kernel_set_names[];

/* Sets @chosen to @of with the links or transport of single-rank replay (replay.h). LH_ERROR_USAGE
 * if its ranks are in several processes. */
bool lh_backend_replaying(const LhBackend *of, LhBackend *chosen, GError **error);

/* Sets @chosen to @of with the control plane @control; lh_control_auto: the one of @of, resolved
 * from the environment. False with @error (LH_ERROR_USAGE) if they are incompatible. */
bool lh_backend_choose(const LhBackend *of, const LhControl *control, LhBackend *chosen,
                       GError **error);
