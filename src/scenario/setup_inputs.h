/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that a setup depends on.
 */
#pragma once

#include "scenario/setup.h"

/* Of LhInput *. */
void lh_setup_input_free(gpointer data);

/* Adds the file @name, of field @of; @kind is its folder of data files, NULL for a file that is
 * never found by name. */
void lh_setup_add_input(LhSetup *setup, const char *of, const char *kind, const char *name,
                        const char *sha256);

/* True if @name is there; else an error at the place that names it. */
bool lh_setup_check_name(const LhScenario *s, const char *field, const char *kind, const char *name,
                         GError **error);
