/* SPDX-License-Identifier: Apache-2.0 */
/* Output of doctor: backends and components of this machine. */
#pragma once

#include "doctor/doctor.h"
#include "report/base/table.h"
#include "report/data/result_json.h"

/* Caller frees. */
LhTable *lh_describe_machine_parts(const LhDoctor *doctor);
LhTable *lh_describe_backends(const LhDoctor *doctor);

/* Fields of the document. */
extern const LhField lh_doctor_fields[];

/* Appends the document of `longhaul doctor`; @ok: the requested backend works. */
void lh_doctor_json(const LhDoctor *doctor, bool ok, const LhStamp *stamp, GString *out);
