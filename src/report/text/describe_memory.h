/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describes how much memory a case needs.
 */
#pragma once

#include "compare/memory_need.h"
#include "report/base/table.h"
#include "report/data/document.h"

#define LH_MEMORY_SCHEMA "longhaul.memory/1"

/* Stages with their peaks by category; and the changes of the case, those that save most first.
 * Caller frees. */
LhTable *lh_describe_stage_needs(const LhMemoryNeed *need);
LhTable *lh_describe_changes(const LhMemoryNeed *need);

/* Appends whether the case fits, and what is largest at the peak. */
void lh_describe_memory_need(const LhSetup *setup, const LhMemoryNeed *need, GString *out);

/* Appends the JSON document. */
extern const LhField lh_memory_fields[];
void lh_memory_json(const LhSetup *setup, const LhMemoryNeed *need, const LhStamp *stamp,
                    GString *out);
