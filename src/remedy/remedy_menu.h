/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be turned on for a step: the remedies of its framework that the scenario leaves open,
 * that exist for the model, and that the framework allows with this division of the GPUs.
 */
#pragma once

#include "remedy/remedies.h"

#define LH_REMEDY_SWITCHES_MAX 24

/* Something to turn on. A set of them is a mask of bits, one for each switch. */
typedef struct {
    LhRemedies adds;
    uint32_t needs;    /* switches that must be on, too: weaker ones of the same option */
    uint32_t excludes; /* switches that must be off */
    bool types;        /* changes what is computed: element types of the optimizer's states */
} LhRemedySwitch;

typedef struct {
    guint count;
    LhRemedySwitch switches[LH_REMEDY_SWITCHES_MAX];
} LhRemedyMenu;

/* @setup: a step as its scenario says. Modules and numbers of layers to recompute are on the menu
 * if no policy is given and the step recomputes nothing. */
void lh_remedy_menu(const LhSetup *setup, LhRemedyMenu *menu);

/* Whether a set is consistent. */
bool lh_remedy_menu_allows(const LhRemedyMenu *menu, uint32_t set);

/* What a set turns on. */
LhRemedies lh_remedy_menu_of(const LhRemedyMenu *menu, uint32_t set);

/* Whether no larger set is consistent, apart from losses, of which none needs least memory in all
 * steps. */
bool lh_remedy_menu_is_most(const LhRemedyMenu *menu, uint32_t set);

/* A loss of the framework that takes less time than the step's, without more flops or traffic; 0:
 * none. As in LhRemedies. */
uint8_t lh_remedy_fast_loss(const LhSetup *setup);
