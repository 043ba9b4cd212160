/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program can be run on: processes, a way to carry messages, a device. Another backend is a
 * row of its own; the executor does not know which one it has.
 */
#pragma once

#include "runtime/api/compute_device.h"
#include "runtime/api/control.h"
#include "runtime/api/links.h"
#include "runtime/api/transport.h"

typedef struct {
    const char *name;
    const LhControl *control;
    const LhTransport *transport; /* with it threads run the ops (thread_engine.c) ... */
    const LhLinks *links; /* ... and with these, in its place, they submit them (submit.c) */
    const LhRunDevice *device;
    bool packed; /* the parts of a slot lie end to end where they can, with no canaries around them
                  */
} LhBackend;

extern const LhBackend lh_backend_cpu;
extern const LhBackend lh_backend_mpi;
extern const LhBackend lh_backend_tcp;
extern const LhBackend lh_backend_cuda;
extern const LhBackend lh_backend_nccl;

/* NULL-terminated; the default first. The names are in the same order: "cpu", "mpi", "cuda". */
extern const LhBackend *const lh_backends[];
extern const char *const lh_backend_names[];

/* The kernel sets of all devices; NULL-terminated. */
extern const char *const lh_kernel_set_names[];

/* @of, with the links or the transport of a rank that runs alone (replay.h). LH_ERROR_USAGE if its
 * ranks are in several processes. */
bool lh_backend_replaying(const LhBackend *of, LhBackend *chosen, GError **error);

/* @of with the control plane @control in @chosen; lh_control_auto: the one that @of has, as the
 * environment says. False with @error (LH_ERROR_USAGE) if they do not go together. */
bool lh_backend_choose(const LhBackend *of, const LhControl *control, LhBackend *chosen,
                       GError **error);
