/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops of explicit programs, read from what a file says.
 */
#pragma once

#include "program/explicit/explicit_fields.h"

/* Reads the ops of all ranks into the program's plan; false with the reader's error. */
bool lh_form_read_ranks(LhFormReader *reader, const LhForm *form);

/* Sets the error at a field of the op being read; false. */
bool lh_form_fail(const LhFormReader *r, const char *field, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
