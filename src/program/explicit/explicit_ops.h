/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the ops of explicit programs.
 */
#pragma once

#include "program/explicit/explicit_fields.h"

/* Reads the ops of all ranks into the program's plan. Returns false with the reader's error set. */
bool lh_form_read_ranks(LhFormReader *reader, const LhForm *form);

/* Sets the error at a field of the op being read and returns false. */
bool lh_form_fail(const LhFormReader *r, const char *field, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
