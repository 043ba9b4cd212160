/* What is here to run on, reported. */
#pragma once

#include "plan/doctor.h"
#include "report/result_json.h"
#include "report/table.h"

/* Caller frees. */
LhTable *lh_describe_machine_parts(const LhDoctor *doctor);
LhTable *lh_describe_backends(const LhDoctor *doctor);

/* Appends the document of `longhaul doctor`; @ok: whether what was asked for works. */
void lh_doctor_json(const LhDoctor *doctor, bool ok, const LhStamp *stamp, GString *out);
