/*
 * What a program can be run on: processes, a way to carry messages, a device. Another backend is a
 * row of its own; the executor does not know which one it has.
 */
#pragma once

#include "runtime/control.h"
#include "runtime/device.h"
#include "runtime/transport.h"

typedef struct {
    const char *name;
    const LhControl *control;
    const LhTransport *transport;
    const LhRunDevice *device;
} LhBackend;

extern const LhBackend lh_backend_cpu;
extern const LhBackend lh_backend_mpi;

/* NULL-terminated; the default first. The names are in the same order: "cpu", "mpi". */
extern const LhBackend *const lh_backends[];
extern const char *const lh_backend_names[];
