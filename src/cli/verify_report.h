/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output of verify, for people and for programs.
 */
#pragma once

#include "cli/command.h"
#include "proof/proven.h"

typedef struct {
    GPtrArray *schedules; /* of LhProven * */
    unsigned passes;      /* bit 1 << LhPass */
    LhModel *model;       /* NULL: only the program of a file */
} LhVerifyReport;

/* Fields of the document longhaul.verdict/1. */
extern const LhField lh_verdict_fields[];

/* Appends it in @format: a table or Markdown with notes, CSV or JSON. */
void lh_verify_report_print(const LhCommandLine *line, const LhVerifyReport *report,
                            LhFormat format, GString *out);

/* Whether every program was proven. */
bool lh_verify_report_all_proven(const LhVerifyReport *report);
