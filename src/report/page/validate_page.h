/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A validation as a page to hand on: how far predictions are off, of what, and how to repeat it.
 */
#pragma once

#include "report/data/result_json.h"
#include "validate/validate.h"

typedef struct {
    const LhSetup *setup;
    const LhValidated *validated;
    const char *of;      /* the case, in words: lines */
    const char *summary; /* how all of it came out, in words: lines */
    const LhStamp *stamp;
    double tolerance;
    bool tiers; /* with what messages took by tier, and hosts */
} LhValidatePage;

/* Appends the page. LH_ERROR_RUNTIME if a figure cannot be drawn. */
bool lh_validate_page(const LhValidatePage *page, GString *out, GError **error);
