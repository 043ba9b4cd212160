/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input files of a setup.
 */
#pragma once

#include "scenario/setup.h"

/* Of LhInput *. */
void lh_setup_input_free(gpointer data);

/* Adds the file @name, given by field @of. @kind is its folder of data files; NULL for a file that
 * is always a path. */
void lh_setup_add_input(LhSetup *setup, const char *of, const char *kind, const char *name,
                        const char *sha256);

/* True if the file @name exists; else an error at the place that names it. */
bool lh_setup_check_name(const LhScenario *s, const char *field, const char *kind, const char *name,
                         GError **error);
