/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a format of exported programs has to do.
 */
#pragma once

#include "report/export/export.h"
#include "sim/cost/cost.h"

#define LH_EXPORT_PIECE_BYTES 65536 /* written at a time */

typedef struct {
    const char *ending; /* of the name that is given */
    bool (*write)(const char *path, const LhSetup *setup, const LhProgram *program, GError **error);
} LhExportFormat;

extern const LhExportFormat lh_export_goal, lh_export_chakra, lh_export_msccl;
