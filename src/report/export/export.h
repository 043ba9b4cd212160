/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program as other people's simulators and runtimes read programs: what its ops take and move,
 * and what waits for what, without the times that a simulation gives them. What a format cannot say
 * is an error that says so (LH_ERROR_NO), and what it leaves out stands in docs/manual/traces.md.
 */
#pragma once

#include "scenario/setup.h"

/* False (LH_ERROR_USAGE) unless @path has the ending of a format. */
bool lh_export_check_path(const char *path, GError **error);

/* Writes @program, as it runs on the setup's cluster, in the format of the ending of @path. Memory
 * grows with the number of ranks and with the ops of one rank (9 bytes each), not with the ops of
 * all. Files are written atomically, all or none. */
bool lh_export_write(const char *path, const LhSetup *setup, const LhProgram *program,
                     GError **error);
