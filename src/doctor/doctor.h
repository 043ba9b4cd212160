/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Capabilities of this machine, this build and the launcher: what works, what does not, why, and
 * the remedy.
 */
#pragma once

#include "runtime/backend.h"

typedef enum {
    LH_HEALTH_WORKS,
    LH_HEALTH_ABSENT, /* or not in use: only what needs it does not work */
    LH_HEALTH_FAILS,  /* present, but faulty */
    LH_HEALTHS
} LhHealth;

/* "works", "absent", "fails"; NULL-terminated. */
extern const char *const lh_health_names[];

/* Strings are owned. */
typedef struct {
    const char *part; /* "device", "nccl"; static. A part may have several rows */
    LhHealth health;
    char *found;  /* what was found: a version, a rate; "": nothing */
    char *advice; /* the reason and the remedy; "": nothing to do */
} LhDoctorRow;

/* Whether a backend can run here. */
typedef struct {
    const LhBackend *backend;
    bool works;
    char *why; /* reason why not; "" if it works */
} LhDoctorBackend;

typedef struct {
    GArray *rows;     /* of LhDoctorRow */
    GArray *backends; /* of LhDoctorBackend, in the order of lh_backends */
} LhDoctor;

/*
 * Checks everything and changes nothing. @root is prepended to paths below /proc and /sys: ""
 * except in tests. Caller frees.
 */
LhDoctor *lh_doctor_new(const char *root);
void lh_doctor_free(LhDoctor *doctor);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhDoctor, lh_doctor_free)
