/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The texts of the files that an answer was made of, which a document may carry with it.
 */
#pragma once

#include "base/json/field.h"
#include "scenario/setup.h"

typedef struct {
    char *path, *text;
} LhInputText;

extern const LhField lh_input_text_fields[];

/* Of LhInputText *. A file that cannot be read any more, has changed since or is no text is left
 * out: its checksum stays among the inputs. Caller unrefs. */
GPtrArray *lh_input_texts(const LhSetup *setup);
