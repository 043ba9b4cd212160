/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interface of the export formats.
 */
#pragma once

#include "report/export/export.h"
#include "sim/cost/cost.h"

#define LH_EXPORT_PIECE_BYTES 65536 /* written at once */

typedef struct {
    const char *ending; /* of the file name */
    bool (*write)(const char *path, const LhSetup *setup, const LhProgram *program, GError **error);
} LhExportFormat;

extern const LhExportFormat lh_export_goal, lh_export_chakra, lh_export_msccl;
