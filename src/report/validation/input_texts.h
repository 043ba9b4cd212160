/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts of a command's input files, for inclusion in a document.
 */
#pragma once

#include "base/json/field.h"
#include "scenario/setup.h"

typedef struct {
    char *path, *text;
} LhInputText;

extern const LhField lh_input_text_fields[];

/* Array of LhInputText *. A file that can no longer be read, has changed or is not text is omitted;
 * its checksum stays among the inputs. Caller unrefs. */
GPtrArray *lh_input_texts(const LhSetup *setup);
