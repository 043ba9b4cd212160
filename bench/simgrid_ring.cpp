// The patterns of patterns.h as a SimGrid S4U program, for a measurement side by side.
//   simgrid_ring P ring|bal compute_seconds jitter message_bytes [--cfg=...]
// Platform: nodes of 8 hosts; each host a 300 GB/s full-duplex link (2 us) to an ideal node switch; each node one
// 12.5 GB/s full-duplex adapter (3 us) to an ideal fabric.
// Prints one line: simgrid <pattern> P=<P> cpu_s=<run phase> rss_bytes=<peak> events=<n> makespan_s=<t>
#include "jitter.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/resource.h>
#include <vector>

#include <simgrid/s4u.hpp>

namespace sg4 = simgrid::s4u;

namespace
{

constexpr int HOSTS_PER_NODE = 8;
constexpr int WINDOW = 16; // mailboxes per rank: steps that may be in flight

struct Pattern {
    int ranks;
    bool bal;
    double compute_s, jitter;
    uint64_t bytes;
};

Pattern pattern;
uint64_t events, mismatches;
std::vector<sg4::Mailbox *> mailboxes;
std::vector<uint64_t> payloads;

double compute_time(uint64_t rank, uint64_t step)
{
    return pattern.compute_s * (1.0 + pattern.jitter * bench_jitter(rank, step));
}

sg4::Mailbox *mailbox(int rank, int step)
{
    return mailboxes[static_cast<size_t>(rank) * WINDOW + step % WINDOW];
}

void rank_main(int p)
{
    const int ranks = pattern.ranks;
    const int steps = pattern.bal ? ranks / 2 : ranks;

    for (int step = 0; step < steps; step++) {
        const int distance = pattern.bal ? step + 1 : 1;
        const int to = (p + distance) % ranks, from = (p - distance + ranks) % ranks;
        uint64_t *received = nullptr;
        sg4::CommPtr in = mailbox(p, step)->get_async<uint64_t>(&received);
        sg4::CommPtr out = mailbox(to, step)->put_async(&payloads[p], pattern.bytes);

        sg4::this_actor::execute(compute_time(p, step));
        out->wait();
        in->wait();
        if (*received != static_cast<uint64_t>(from))
            mismatches++;
        events += 2;
    }
}

void build_platform()
{
    auto *root = sg4::create_star_zone("root");
    std::vector<sg4::Host *> hosts;

    for (int n = 0; n * HOSTS_PER_NODE < pattern.ranks; n++) {
        const std::string name = std::to_string(n);
        auto *zone = sg4::create_star_zone("node" + name);

        zone->set_parent(root);
        auto *gateway = zone->create_router("gateway" + name);
        for (int p = n * HOSTS_PER_NODE; p < (n + 1) * HOSTS_PER_NODE && p < pattern.ranks; p++) {
            const std::string id = std::to_string(p);
            auto *host = zone->create_host("host" + id, 1.0);
            auto *up = zone->create_link("up" + id, 300e9)->set_latency(2e-6)->seal();
            auto *down = zone->create_link("down" + id, 300e9)->set_latency(0)->seal();

            zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, { sg4::LinkInRoute(up) }, false);
            zone->add_route(nullptr, host->get_netpoint(), nullptr, nullptr, { sg4::LinkInRoute(down) }, false);
            host->seal();
            hosts.push_back(host);
        }
        zone->add_route(gateway, nullptr, nullptr, nullptr, {}, false);
        zone->add_route(nullptr, gateway, nullptr, nullptr, {}, false);
        zone->seal();
        auto *up = root->create_link("nic-up" + name, 12.5e9)->set_latency(3e-6)->seal();
        auto *down = root->create_link("nic-down" + name, 12.5e9)->set_latency(0)->seal();
        root->add_route(zone->get_netpoint(), nullptr, gateway, nullptr, { sg4::LinkInRoute(up) }, false);
        root->add_route(nullptr, zone->get_netpoint(), nullptr, gateway, { sg4::LinkInRoute(down) }, false);
    }
    root->seal();
    for (int p = 0; p < pattern.ranks; p++) {
        payloads.push_back(p);
        for (int w = 0; w < WINDOW; w++)
            mailboxes.push_back(sg4::Mailbox::by_name("m" + std::to_string(p) + "." + std::to_string(w)));
        sg4::Actor::create("rank" + std::to_string(p), hosts[p], rank_main, p);
    }
}

double cpu_seconds()
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 6) {
        fprintf(stderr, "usage: simgrid_ring P ring|bal compute_seconds jitter message_bytes [--cfg=...]\n");
        return 2;
    }
    // Ideal links: no TCP model, no cross traffic, so that both simulators answer the same question.
    std::vector<std::string> arguments{ argv[0], "--log=root.thresh:warning", "--cfg=network/model:CM02",
                                        "--cfg=network/crosstraffic:0", "--cfg=network/TCP-gamma:0",
                                        "--cfg=contexts/stack-size:64" };
    arguments.insert(arguments.end(), argv + 1, argv + argc);
    std::vector<char *> pointers;
    for (auto &argument : arguments)
        pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    int count = static_cast<int>(arguments.size());
    char **values = pointers.data();
    sg4::Engine engine(&count, values);

    pattern = { atoi(values[1]), strcmp(values[2], "bal") == 0, atof(values[3]), atof(values[4]),
                static_cast<uint64_t>(atof(values[5])) };
    build_platform();
    const double before = cpu_seconds();
    engine.run();
    const double after = cpu_seconds();
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("simgrid %s P=%d cpu_s=%.6f rss_bytes=%ld events=%lu makespan_s=%.9f\n", pattern.bal ? "bal" : "ring",
           pattern.ranks, after - before, usage.ru_maxrss * 1024, static_cast<unsigned long>(events),
           sg4::Engine::get_clock());
    return mismatches == 0 ? 0 : 1;
}
