/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs in formats of other simulators and runtimes: ops with their amounts of work and data,
 * and their dependencies, without simulated times. What a format cannot represent is an error with
 * the reason (LH_ERROR_NO); what it omits is listed in docs/manual/traces.md.
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
