/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numerical faults for bench_errors: those of the executor, faults of every call of a kernel, and
 * faults of results.
 */
#pragma once

#include "reference/tolerance.h"
#include "runtime/inject.h"

/* NULL-terminated. */
extern const char *const fault_names[];

typedef struct _Fault Fault;

/* Creates fault @kind of fault_names; NULL if it does not apply to the program. */
Fault *fault_new(unsigned kind, const LhProgram *program, uint64_t seed);
void fault_free(Fault *fault);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Fault, fault_free)

const LhRunHooks *fault_hooks(Fault *fault);

/* Applies a fault of results; no effect for other faults. */
void fault_in_result(Fault *fault, const LhReference *reference, const LhProgram *program,
                     const LhRunResult *result);
