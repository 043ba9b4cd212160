/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was asked, as results say it: the fields of the scenario that were given, the options of the
 * command that the answer depends on, and the files. Members "asked" and "inputs".
 */
#pragma once

#include "base/json/json.h"
#include "report/data/result_json.h"

/* Writes "asked" into the open object; nothing if the stamp has no scenario. Of scenarios it has
 * what was given, of options all: what was given, else what they are then, else null. */
void lh_query_stamp_json(LhJsonWriter *w, const LhStamp *stamp);

/* Writes "inputs": those of @inputs (of LhInput *; may be NULL), and the configuration. */
void lh_inputs_json(LhJsonWriter *w, const LhStamp *stamp, const GPtrArray *inputs);

/* What the name of a file's digest begins with; behind it stands what it is the file of. */
#define LH_DIGEST_OF "SHA-256 of "
