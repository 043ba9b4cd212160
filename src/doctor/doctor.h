/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is here to run on: of this machine, of this build, and of what started the process; and what
 * will not work, why, and what to do about it.
 */
#pragma once

#include "runtime/backend.h"

typedef enum {
    LH_HEALTH_WORKS,
    LH_HEALTH_ABSENT, /* or not in use: what needs it will not work, and all else does */
    LH_HEALTH_FAILS,  /* it is here, and not as it should be */
    LH_HEALTHS
} LhHealth;

/* "works", "absent", "fails"; NULL-terminated. */
extern const char *const lh_health_names[];

/* Strings are owned. */
typedef struct {
    const char *part; /* "device", "nccl"; static. A part may have several rows */
    LhHealth health;
    char *found;  /* what is there: a version, a rate; "": nothing */
    char *advice; /* why it is not, and what to do; "": nothing is to be done */
} LhDoctorRow;

/* Whether a backend can run here. */
typedef struct {
    const LhBackend *backend;
    bool works;
    char *why; /* not; "" if it works */
} LhDoctorBackend;

typedef struct {
    GArray *rows;     /* of LhDoctorRow */
    GArray *backends; /* of LhDoctorBackend, in the order of lh_backends */
} LhDoctor;

/*
 * Looks at everything; nothing of it is changed. @root stands before the names below /proc and
 * /sys: "" but for tests. Caller frees.
 */
LhDoctor *lh_doctor_new(const char *root);
void lh_doctor_free(LhDoctor *doctor);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhDoctor, lh_doctor_free)
