/* SPDX-License-Identifier: Apache-2.0 */
#include "report/export/export.h"

#include "base/files/output.h"
#include "report/export/export_format.h"

static const LhExportFormat *const export_formats[] = { &lh_export_goal, &lh_export_chakra,
                                                        &lh_export_msccl };

static const LhExportFormat *
export_format_of(const char *path)
{
    for (guint i = 0; i < G_N_ELEMENTS(export_formats); i++) {
        if (g_str_has_suffix(path, export_formats[i]->ending))
            return export_formats[i];
    }
    return NULL;
}

bool
lh_export_check_path(const char *path, GError **error)
{
    if (export_format_of(path) != NULL)
        return true;
    return lh_output_refuse(
        "--export", path,
        "a name that ends in .goal (for LogGOPSim), .et (for ASTRA-sim) or .xml (for MSCCL)",
        error);
}

bool
lh_export_write(const char *path, const LhSetup *setup, const LhProgram *program, GError **error)
{
    return export_format_of(path)->write(path, setup, program, error);
}
