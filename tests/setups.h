/* SPDX-License-Identifier: Apache-2.0 */
/* A scenario and the setup made from it. */
#pragma once

#include "checking.h"
#include "scenario/setup.h"

#include <string.h>

typedef struct {
    LhScenario *scenario;
    LhSetup *setup;
} Case;

/* Parses a scenario with the JSON @members after its schema. Ends with case_clear(). */
static inline Case
case_of(const char *members)
{
    g_autofree char *text = g_strdup_printf("{\"schema\": \"longhaul.scenario/1\", %s}", members);
    g_autoptr(GError) error = NULL;
    Case c = { .scenario = lh_scenario_parse("s.json", text, strlen(text), &error) };

    ck_assert_msg(c.scenario != NULL, "%s", error != NULL ? error->message : text);
    c.setup = lh_setup_new(c.scenario, &error);
    ck_assert_msg(c.setup != NULL, "%s", error != NULL ? error->message : text);
    return c;
}

static inline void
case_clear(Case *c)
{
    lh_setup_free(c->setup);
    lh_scenario_free(c->scenario);
}
