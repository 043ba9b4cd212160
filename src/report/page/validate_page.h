/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A validation as a page: errors of predictions, and how to reproduce it.
 */
#pragma once

#include "report/data/result_json.h"
#include "validate/validate.h"

typedef struct {
    const LhSetup *setup;
    const LhValidated *validated;
    const char *of;      /* the case, as lines of text */
    const char *summary; /* summary, as lines of text */
    const LhStamp *stamp;
    double tolerance;
    bool tiers; /* also messages by tier, and hosts */
} LhValidatePage;

/* Appends the page. LH_ERROR_RUNTIME if a figure cannot be drawn. */
bool lh_validate_page(const LhValidatePage *page, GString *out, GError **error);
